"""Claims about records that become rows of an archive (`pipelines.archive`)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pybroker_spark.pipelines import archive, dead_letters, file_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java

RECORD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    f"headers {dead_letters.HEADERS_TYPE}"
)
BEFORE_MIDNIGHT = datetime(2017, 3, 1, 23, 59, 59, 999_000, tzinfo=UTC)
MIDNIGHT = datetime(2017, 3, 2, tzinfo=UTC)
HEADERS = [("trace", b"7")]


def sent(spark: SparkSession, *values: bytes | None, at: datetime = MIDNIGHT) -> DataFrame:
    rows: list[Any] = [(b"k", value, "orders", 1, offset, at, HEADERS) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, RECORD)


def test_bytes_are_kept_as_they_are(spark: SparkSession) -> None:
    read = archive.read_values(sent(spark, b"\xff", None), "binary")
    rows = archive.rows(read).collect()
    assert [row["value"] and bytes(row["value"]) for row in rows] == [b"\xff", None]
    assert rows[0].asDict().keys() == {
        "key", "value", "partition", "offset", "timestamp", "headers", "topic", "date"
    }  # fmt: skip
    assert archive.letters(read).collect() == []


def test_folders_are_of_the_records_own_day_and_hour(spark: SparkSession) -> None:
    read = archive.read_values(sent(spark, b"a", at=BEFORE_MIDNIGHT).unionAll(sent(spark, b"b")), "string")
    rows = archive.rows(read, ("topic", "date", "hour")).orderBy("value").collect()
    assert [(row["value"], row["topic"], str(row["date"]), row["hour"]) for row in rows] == [
        ("a", "orders", "2017-03-01", 23),
        ("b", "orders", "2017-03-02", 0),
    ]


def test_json_becomes_a_struct_and_what_is_none_a_dead_letter_that_names_its_record(spark: SparkSession) -> None:
    schema = file_rows.parse_schema("id INT, name STRING")
    read = archive.read_values(sent(spark, b'{"id": 1}', b'{"id": "x"}', None, b"\xff"), "json", schema)
    rows = archive.rows(read).orderBy("offset").collect()
    assert [(row["offset"], row["value"] and row["value"].asDict()) for row in rows] == [
        (0, {"id": 1, "name": None}),
        (2, None),
    ]
    first, second = archive.letters(read).orderBy("value").collect()
    assert (bytes(first["key"]), bytes(first["value"]), bytes(second["value"])) == (b"k", b'{"id": "x"}', b"\xff")
    headers = {one["key"]: bytes(one["value"]) for one in first["headers"]}
    assert headers.pop("__connect.errors.task.id").isdigit()
    assert headers == {
        "trace": b"7",
        "__connect.errors.connector.name": b"archive",
        "__connect.errors.topic": b"orders",
        "__connect.errors.partition": b"1",
        "__connect.errors.offset": b"1",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.exception.class.name": b"org.apache.kafka.connect.errors.DataException",
        "__connect.errors.exception.message": b"column 'id' is 'x', and the schema says INT",
    }
    assert second["headers"][0]["key"] == "trace"


def test_without_a_dead_letter_topic_the_first_bad_record_ends_the_job(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    read = archive.read_values(sent(spark, b"good", b"\xff"), "string")
    with pytest.raises(PySparkException, match="topic 'orders', partition 1, offset 1: the value is not UTF-8; give"):
        archive.rows(read, refusing=True).collect()
