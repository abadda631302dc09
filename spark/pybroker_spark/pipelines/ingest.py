"""Ingest: files of CSV, JSON lines, text or Parquet to a topic, and what is not fit to a dead-letter topic.

    files -> numbered rows -> row or error -> record or dead letter -> topics

Without a checkpoint the files that are there are read once, as a batch. With one it is a stream: a file is read once
and never again, also after a restart, and files that come later are read when they come. Good records and dead letters
are one write, so that none is lost between two.

Owns the way from a row to a record. Must not know how a line is parsed (`parsing`) or counted (`file_rows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pybroker_spark.pipelines import dead_letters, parsing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

NAME: Final = "ingest"

MAX_REQUEST_SIZE: Final = 1_048_576
"""Kafka's default of `max.request.size`."""

RECORD_OVERHEAD: Final = 61 + 21 + 5 + 5 + 1
"""What a batch of one record adds to key and value at most: the batch's header, the record's, three lengths."""


def read_lines(
    lines: DataFrame, schema: StructType | None, form: str, *, header: bool = False, **options: str
) -> DataFrame:
    """Numbered lines as (value, file, block, line, row, error): what goes to the topic, or why it cannot.

    A line of text is the value as it is. One of CSV becomes an object of JSON; one of JSON stays as it is unless it
    does not fit the schema. Blank lines are no rows, and with `header` the first line of a file is none.
    """
    if form == "text":
        return lines.withColumn("error", sf.lit(None).cast("string"))
    text = sf.col("value").cast("string")
    rows = lines.withColumn("__text", text).where(sf.trim("__text") != "")
    if form == "csv" and header:
        rows = rows.where((sf.col("block") > 0) | (sf.col("line") > 1))
    assert schema is not None
    rows = parsing.parsed(rows, "__text", schema, form, options).drop("__text")
    if form == "csv":
        value = sf.when(sf.col("error").isNull(), sf.to_json("row").cast("binary")).otherwise(sf.col("value"))
        rows = rows.withColumn("value", value)
    return rows


def records(
    rows: DataFrame,
    topic: str,
    *,
    dead_letter_topic: str | None = None,
    key: str | None = None,
    max_request_size: int = MAX_REQUEST_SIZE,
) -> DataFrame:
    """Rows as records (topic, key, value, headers, error): good ones for `topic`, others for `dead_letter_topic`.

    Without a dead-letter topic the first bad row ends the job with its file, line and error.
    """
    key_value = sf.lit(None).cast("binary") if key is None else sf.col(f"row.`{key}`").cast("string").cast("binary")
    rows = rows.withColumn("key", key_value)
    size = sf.octet_length("value") + sf.coalesce(sf.octet_length("key"), sf.lit(0)) + RECORD_OVERHEAD
    too_large = sf.col("error").isNull() & (size > max_request_size)
    told = sf.concat(sf.lit("the record has "), size, sf.lit(f" bytes, more than max.request.size={max_request_size}"))
    error = sf.when(too_large, told).otherwise(sf.col("error"))
    if dead_letter_topic is None:
        return rows.withColumn("error", _refused(error)).select(
            sf.lit(topic).alias("topic"), "key", "value", _no_headers().alias("headers"), "error"
        )
    headers = dead_letters.of_line(
        NAME,
        stage=sf.when(too_large, dead_letters.KAFKA_PRODUCE).otherwise(dead_letters.VALUE_CONVERTER),
        exception=sf.when(too_large, dead_letters.TOO_LARGE_EXCEPTION).otherwise(dead_letters.DATA_EXCEPTION),
        error=error,
        length=sf.when(too_large, sf.octet_length("value")),
    )
    kept = sf.when(too_large, sf.substring("value", 1, dead_letters.KEPT_BYTES)).otherwise(sf.col("value"))
    return rows.select(
        sf.when(error.isNull(), sf.lit(topic)).otherwise(sf.lit(dead_letter_topic)).alias("topic"),
        sf.when(~too_large, sf.col("key")).alias("key"),
        kept.alias("value"),
        sf.when(error.isNotNull(), headers).alias("headers"),
        error.alias("error"),
    )


def _no_headers() -> Column:
    return sf.lit(None).cast(dead_letters.HEADERS_TYPE)


def _refused(error: Column) -> Column:
    where = sf.concat(sf.col("file"), sf.lit(", line "), sf.col("line"))
    where = sf.when(sf.col("block") > 0, sf.concat(where, sf.lit(" from byte "), sf.col("block"))).otherwise(where)
    hint = sf.lit("; give --dead-letter-topic to go on past such rows")
    return sf.when(error.isNotNull(), sf.raise_error(sf.concat(where, sf.lit(": "), error, hint))).cast("string")
