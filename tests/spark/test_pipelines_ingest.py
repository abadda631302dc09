"""Claims about rows of files and the records and dead letters that they become (`pipelines.ingest`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybroker_spark.pipelines import dead_letters, file_rows, ingest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SCHEMA = file_rows.ROWS_TYPE


def read(spark: SparkSession, path: Path, schema: str | None, form: str, **options: Any) -> DataFrame:
    """The rows of files of lines."""
    parsed = None if schema is None else file_rows.parse_schema(schema)
    return ingest.read_lines(file_rows.lines(spark.read.text(str(path))), parsed, form, **options)


def headers_of(row: Row) -> dict[str, str]:
    """The headers of a dead letter without the prefix that all have."""
    assert all(one["key"].startswith("__connect.errors.") for one in row["headers"])
    return {one["key"].removeprefix("__connect.errors."): bytes(one["value"]).decode() for one in row["headers"]}


def errors(rows: DataFrame) -> list[tuple[int, str]]:
    """Lines and errors of what is not fit."""
    bad = rows.where("error IS NOT NULL").select("line", "error").orderBy("line")
    return [(row["line"], row["error"]) for row in bad.collect()]


@pytest.mark.java
def test_lines_of_csv_become_objects_and_bad_ones_dead_letters_with_exact_headers(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "orders.csv"
    file.write_bytes(b"id,name,price\n1,pen,1.5\n2,ink\n\nx3,paper,2\n4,\xff,3\n5,'a, b',4\n")
    rows = read(spark, tmp_path, "id INT, name STRING, price DOUBLE", "csv", header=True, quote="'")
    found = ingest.records(rows, "orders", dead_letter_topic="dead", key="id").orderBy("topic", "value").collect()
    good = [(bytes(row["key"]), json.loads(row["value"])) for row in found if row["topic"] == "orders"]
    assert good == [
        (b"1", {"id": 1, "name": "pen", "price": 1.5}),
        (b"5", {"id": 5, "name": "a, b", "price": 4.0}),
    ]
    assert all(row["headers"] is None for row in found if row["topic"] == "orders")
    dead = {bytes(row["value"]): headers_of(row) for row in found if row["topic"] == "dead"}
    faults = {
        b"2,ink": ("3", "the line has not the 3 columns of the schema"),
        b"4,\xff,3": ("6", "the value is not UTF-8"),
        b"x3,paper,2": ("5", "column 'id' is 'x3', and the schema says INT"),
    }
    assert {value: (one["file.line"], one["exception.message"]) for value, one in dead.items()} == faults
    assert all(row["key"] is None for row in found if row["topic"] == "dead")
    headers = dead[b"2,ink"]
    assert headers.pop("task.id").isdigit()
    assert headers == {
        "connector.name": "ingest",
        "file": f"file:{file}",
        "file.line": "3",
        "file.block": "0",
        "stage": "VALUE_CONVERTER",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        "exception.message": "the line has not the 3 columns of the schema",
    }


@pytest.mark.java
def test_lines_of_json_stay_as_they_are_and_each_fault_is_named(spark: SparkSession, tmp_path: Path) -> None:
    lines = {
        '{"id": 1, "name": "pen", "more": [1, 2]}': None,
        '{"id": null}': None,
        "{}": None,
        "{": "the value is not JSON",
        "[1]": "the value is JSON, but no object",
        "7": "the value is JSON, but no object",
        '{"id": "seven"}': "column 'id' is 'seven', and the schema says INT",
        '{"id": 1} {"id": 2}': "the value is not JSON",
        '{"id": 1}, {"id": 2}': "the value is more than one of JSON",
        '{"id": 1, "id": 2}': None,
        '{"at": "soon"}': "column 'at' is 'soon', and the schema says TIMESTAMP",
        f'{{"id": "{"x" * 200}"}}': f"column 'id' is '{'x' * 100}', and the schema says INT",
    }
    (tmp_path / "orders.json").write_text("\n".join(lines))
    rows = read(spark, tmp_path, "id INT, name STRING, at TIMESTAMP", "json").orderBy("line").collect()
    assert [(bytes(row["value"]).decode(), row["error"]) for row in rows] == list(lines.items())


@pytest.mark.java
def test_text_is_sent_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n\n\xfftwo\r\n  three")
    rows = ingest.records(read(spark, tmp_path, None, "text"), "lines").collect()
    assert [bytes(row["value"]) for row in rows] == [b"one", b"", b"\xfftwo", b"  three"]
    assert {(row["topic"], row["key"], row["headers"], row["error"]) for row in rows} == {("lines", None, None, None)}


@pytest.mark.java
def test_lines_are_counted_in_each_file_and_each_block_of_it(spark: SparkSession, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("".join(f"{name}{number}\n" for number in range(1, 400)))
    before = spark.conf.get("spark.sql.files.maxPartitionBytes") or ""
    try:
        whole = read(spark, tmp_path, None, "text").collect()
        spark.conf.set("spark.sql.files.maxPartitionBytes", "1000")
        blocks = read(spark, tmp_path, None, "text").collect()
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    assert all(int(bytes(row["value"])[1:]) == row["line"] for row in whole)
    assert {row["block"] for row in whole} == {0}
    assert {row["block"] for row in blocks} == {0, 1000}
    for row in blocks:
        lines = (tmp_path / Path(row["file"]).name).read_bytes()
        # The first line of a block is the first that begins in it, or at its first byte.
        skipped = lines[: row["block"]].count(b"\n") + (row["block"] > 0 and lines[row["block"] - 1 :][:1] != b"\n")
        assert lines.split(b"\n")[skipped + row["line"] - 1] == bytes(row["value"])


@pytest.mark.java
def test_without_a_dead_letter_topic_the_first_bad_row_ends_the_job(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    (tmp_path / "a.json").write_text('{"id": 1}\n{"id": "x"}\n')
    rows = ingest.records(read(spark, tmp_path, "id INT", "json"), "orders")
    with pytest.raises(PySparkException, match=r"a\.json, line 2: column 'id' is 'x', and the schema says INT; give"):
        rows.select("value", "error").collect()


@pytest.mark.java
def test_a_record_over_the_limit_is_cut_and_says_its_length(spark: SparkSession, tmp_path: Path) -> None:
    limit = 100_000
    fits = limit - ingest.RECORD_OVERHEAD
    (tmp_path / "a.txt").write_text("x" * fits + "\n" + "y" * (fits + 1))
    rows = ingest.records(read(spark, tmp_path, None, "text"), "t", dead_letter_topic="d", max_request_size=limit)
    good, dead = rows.collect()
    assert (good["topic"], len(good["value"])) == ("t", fits)
    assert (dead["topic"], bytes(dead["value"])) == ("d", b"y" * dead_letters.KEPT_BYTES)
    headers = headers_of(dead)
    assert headers["stage"] == "KAFKA_PRODUCE"
    assert headers["exception.class.name"] == "org.apache.kafka.common.errors.RecordTooLargeException"
    assert headers["exception.message"] == "the record has 100001 bytes, more than max.request.size=100000"
    assert headers["value.length"] == str(fits + 1)


@pytest.mark.java
def test_rows_of_parquet_are_counted_in_their_file(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3], "word": ["a", None, "c"]}), tmp_path / "a.parquet")
    rows = file_rows.parquet_rows(spark.read.parquet(str(tmp_path))).collect()
    assert [(row["line"], json.loads(row["value"])) for row in rows] == [
        (1, {"id": 1, "word": "a"}),
        (2, {"id": 2}),
        (3, {"id": 3, "word": "c"}),
    ]


@pytest.mark.java
def test_a_schema_is_given_or_inferred_from_the_lines_that_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1, "name": "pen"}\nno JSON\n{"id": 2.5}\n')
    inferred = file_rows.schema_of(spark, str(tmp_path), "json", None, {})
    assert inferred.simpleString() == "struct<id:double,name:string>"
    given = file_rows.schema_of(spark, str(tmp_path), "json", "id INT", {})
    assert given.simpleString() == "struct<id:int>"


RUNS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0, 7]), st.integers(1, 5)), max_size=8)


@given(runs=RUNS, sizes=st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_lines_are_numbered_as_a_naive_count_does(runs: list[tuple[str, int, int]], sizes: list[int]) -> None:
    places = [(file, block) for file, block, lines in runs for _ in range(lines)]
    expected, last = [], None
    for place in places:
        expected.append(expected[-1] + 1 if place == last else 1)
        last = place
    batches, rest = [], places
    for number in range(1000):
        if not rest:
            break
        size = sizes[number % len(sizes)] or (1 if not any(sizes) else 0)
        batches.append(_batch(rest[:size]))
        rest = rest[size:]
    numbered = list(file_rows.numbered(iter(batches)))
    assert [line for batch in numbered for line in batch.column("line").to_pylist()] == expected
    assert all(batch.num_rows for batch in numbered)


def _batch(places: list[tuple[str, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([b"x"] * len(places), pa.binary()),
            pa.array([file for file, _ in places], pa.string()),
            pa.array(np.array([block for _, block in places], dtype=np.int64)),
        ],
        names=["value", "file", "block"],
    )
