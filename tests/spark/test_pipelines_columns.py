"""Columns that become parts of records: found in DDL as Spark finds them, and judged before Spark starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pybroker.testing import Broker
from pybroker_spark.pipelines import columns, ingest, job
from tests.support import librdkafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = [
    "id INT, name STRING",
    "id: INT, user: STRUCT<id: BIGINT, name: STRING>",
    "`user.id` INT NOT NULL COMMENT 'a, b', at TIMESTAMP_NTZ",
    "price DECIMAL(10, 2), tags ARRAY<STRING>, h MAP<STRING, BINARY>",
    "a STRUCT<b: STRUCT<`c d`: ARRAY<STRUCT<x INT, y LONG>>>, e: DECIMAL(3,1)>",
    "`it``s` STRING COMMENT 'it''s', at TIMESTAMP",
    "t TIMESTAMP WITHOUT TIME ZONE, b BYTE, s SHORT",
]


def names(node: columns.Node) -> dict[str, object]:
    return {name: names(inner) for name, inner in node.fields.items()}


@pytest.mark.java
@pytest.mark.parametrize("ddl", DDL)
def test_ddl_has_the_columns_that_spark_finds(spark: SparkSession, ddl: str) -> None:
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    ours = columns.of_ddl(ddl)
    assert ours is not None
    assert names(ours) == names(columns.of_type(schema))


@pytest.mark.parametrize("ddl", ["", "id", "id INT,", "id STRUCT<a INT", "INT)", "a ARRAY<"])
def test_what_is_no_list_of_columns_is_left_to_spark(ddl: str) -> None:
    assert columns.of_ddl(ddl) is None


@pytest.mark.parametrize(
    ("option", "column", "reason"),
    [
        (
            "key",
            "user.no",
            "--key: there is no column 'user.no'; there are id, user, user.id, user.id.x, user.at, h, n",
        ),
        ("timestamp", "id", "--timestamp: column 'id' is STRING; must be TIMESTAMP, or BIGINT for milliseconds"),
        ("partition", "user.at", "--partition: column 'user.at' is TIMESTAMP; must be INT"),
        ("headers", "n", "--headers: column 'n' is MAP<INT,STRING>; must be MAP<STRING, STRING>, a STRUCT whose"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_before_spark_starts(
    capsys: pytest.CaptureFixture[str], option: str, column: str, reason: str
) -> None:
    """No broker listens there either: the options are judged first."""
    ddl = "id STRING, user STRUCT<id: STRUCT<x: INT>, at: TIMESTAMP>, h MAP<STRING, STRING>, n MAP<INT, STRING>"
    where = ["--bootstrap-server", "127.0.0.1:1", "--source", "/nowhere", "--format", "json", "--topic", "t"]
    assert job.main(ingest.JOB, [*where, "--schema", ddl, f"--{option}", column, "--master", "no master"]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.java
@pytest.mark.parametrize("kind", ["MAP<STRING, STRING>", "STRUCT<trace: STRING, none: STRING>"])
def test_nested_fields_become_key_time_partition_and_headers(
    spark: SparkSession, broker: Broker, make_topic: Callable[..., str], tmp_path: Path, kind: str
) -> None:
    topic, at = make_topic(3), 1_700_000_000_123
    rows = [
        {"user": {"id": 7, "at": at}, "place": {"part": 2}, "h": {"trace": "t1"}},
        {"user": {"id": 8, "at": at + 1}, "place": {"part": 2}},
    ]
    (tmp_path / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ddl = f"user STRUCT<id: INT, at: BIGINT>, place STRUCT<part: INT>, h {kind}"
    where = ["--bootstrap-server", broker.bootstrap_servers, "--source", str(tmp_path), "--format", "json"]
    parts = ["--key", "user.id", "--timestamp", "user.at", "--partition", "place.part", "--headers", "h"]
    letters = ["--dead-letter-topic", make_topic(1)]
    assert job.main(ingest.JOB, [*where, "--schema", ddl, *parts, "--topic", topic, *letters]) == 0
    messages = librdkafka.read_partition(broker.bootstrap_servers, topic, 2)
    found = [(m.key(), m.timestamp()[1], m.headers(), json.loads(m.value() or b"")) for m in messages]
    assert found == [(b"7", at, [("trace", b"t1")], rows[0]), (b"8", at + 1, None, rows[1])]


@pytest.mark.java
def test_a_column_whose_own_name_has_a_dot_goes_first(
    spark: SparkSession, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(1)
    (tmp_path / "rows.csv").write_text("user.id,at\n7,2023-11-14T22:13:20.500Z\n")
    where = ["--bootstrap-server", broker.bootstrap_servers, "--source", str(tmp_path), "--format", "csv", "--header"]
    parts = ["--key", "user.id", "--timestamp", "at", "--topic", topic]
    assert job.main(ingest.JOB, [*where, *parts]) == 0
    (message,) = librdkafka.read_partition(broker.bootstrap_servers, topic, 0)
    assert (message.key(), message.timestamp()[1]) == (b"7", 1_700_000_000_500)
