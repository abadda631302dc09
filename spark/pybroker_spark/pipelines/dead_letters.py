"""Dead letters: records that could not be read, parsed or sent, with headers about their origin and the error.

Owns the names of the headers, which are those of Kafka Connect's dead letter queue (`__connect.errors.*`, KIP-298),
so its tools can read them. `file`, `file.line`, `file.block` and `value.length` have no counterpart there, since a
sink of Connect reads only topics. Must not detect errors: `parsing` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

PREFIX: Final = "__connect.errors."

DATA_EXCEPTION: Final = "org.apache.kafka.connect.errors.DataException"
"""The exception of Connect's converters for a value that they cannot read."""

TOO_LARGE_EXCEPTION: Final = "org.apache.kafka.common.errors.RecordTooLargeException"
"""The exception of Kafka's producer for a record over `max.request.size`."""

VALUE_CONVERTER: Final = "VALUE_CONVERTER"
"""Connect's stage in which a value is read."""

KAFKA_PRODUCE: Final = "KAFKA_PRODUCE"
"""Connect's stage in which a record is sent."""

KEPT_BYTES: Final = 64 * 1024
"""Maximum length of the value in a dead letter whose value is too large for its topic."""

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"


def headers(job: str, details: Mapping[str, Column]) -> Column:
    """Return the headers of a dead letter: its `details` with the prefix `PREFIX`, as text, without nulls.

    As in Connect, every value is UTF-8 text.
    """
    fields = {"connector.name": sf.lit(job), "task.id": sf.spark_partition_id(), **details}
    pairs = [
        sf.struct(sf.lit(PREFIX + name).alias("key"), value.cast("string").cast("binary").alias("value"))
        for name, value in fields.items()
    ]
    return sf.filter(sf.array(*pairs), lambda pair: pair["value"].isNotNull()).cast(HEADERS_TYPE)


def of_line(job: str, *, stage: Column, exception: Column, error: Column, length: Column) -> Column:
    """Return headers of a row of a file, from its columns `file`, `block` and `line`."""
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
    """Return headers of a record with an unreadable value, from its columns `topic`, `partition` and `offset`."""
    details = {
        "topic": sf.col("topic"),
        "partition": sf.col("partition"),
        "offset": sf.col("offset"),
        "stage": sf.lit(VALUE_CONVERTER),
        "exception.class.name": sf.lit(DATA_EXCEPTION),
        "exception.message": error,
    }
    return headers(job, details)
