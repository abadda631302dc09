"""Dead letters: what could not be read, parsed or sent, with headers that say where it came from and what was wrong.

Owns the names of the headers, which are those of Kafka Connect's dead letter queue (`__connect.errors.*`, KIP-298), so
that tools for it read these as well; `file`, `file.line`, `file.block` and `value.length` have no counterpart there,
since a sink of Connect reads topics only. Must not know which rows are bad: that is `parsing`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

PREFIX: Final = "__connect.errors."

DATA_EXCEPTION: Final = "org.apache.kafka.connect.errors.DataException"
"""What Connect's converters raise for a value that they cannot read."""

TOO_LARGE_EXCEPTION: Final = "org.apache.kafka.common.errors.RecordTooLargeException"
"""What Kafka's producer raises for a record over `max.request.size`."""

VALUE_CONVERTER: Final = "VALUE_CONVERTER"
"""Connect's stage in which a value is read."""

KAFKA_PRODUCE: Final = "KAFKA_PRODUCE"
"""Connect's stage in which a record is sent."""

KEPT_BYTES: Final = 64 * 1024
"""A dead letter of a value that is too large for its topic carries this much of it."""

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"


def headers(job: str, details: Mapping[str, Column]) -> Column:
    """The headers of a dead letter: its `details` under `PREFIX`, as text; what is null has no header.

    As Connect does, every value is its text in UTF-8.
    """
    fields = {"connector.name": sf.lit(job), "task.id": sf.spark_partition_id(), **details}
    pairs = [
        sf.struct(sf.lit(PREFIX + name).alias("key"), value.cast("string").cast("binary").alias("value"))
        for name, value in fields.items()
    ]
    return sf.filter(sf.array(*pairs), lambda pair: pair["value"].isNotNull()).cast(HEADERS_TYPE)


def of_line(job: str, *, stage: Column, exception: Column, error: Column, length: Column) -> Column:
    """Headers of a row of a file, with its columns `file`, `block` and `line`."""
    details = {
        "file": sf.col("file"),
        "file.line": sf.col("line"),
        "file.block": sf.col("block"),
        "stage": stage,
        "exception.class.name": exception,
        "exception.message": error,
        "value.length": length,
    }
    return headers(job, details)


def of_record(job: str, error: Column) -> Column:
    """Headers of a record of a topic whose value cannot be read, with its columns `topic`, `partition` and `offset`."""
    details = {
        "topic": sf.col("topic"),
        "partition": sf.col("partition"),
        "offset": sf.col("offset"),
        "stage": sf.lit(VALUE_CONVERTER),
        "exception.class.name": sf.lit(DATA_EXCEPTION),
        "exception.message": error,
    }
    return headers(job, details)
