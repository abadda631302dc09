"""Archive: topics to Parquet in folders by topic and date, and what cannot be read to a dead-letter topic.

    records (topics) -> columns or error -> Parquet in folders, exactly once | dead letters (topic)

It is a stream that ends when everything has been read (`--available-now`) or never. The files are Spark's own sink's:
a file of a micro-batch that was not finished stays out of `_spark_metadata`, and readers that go by it see each record
once. Dead letters are a second query with a checkpoint of its own, so that each of the two goes on from where it was.

Owns the columns of the archive. Must not know how records travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pybroker_spark.pipelines import dead_letters, parsing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

NAME: Final = "archive"

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
FOLDERS: Final = ("topic", "partition", "date", "hour")
VALUES: Final = ("binary", "string", "json")


def read_values(records: DataFrame, values: str, schema: StructType | None = None) -> DataFrame:
    """Records with `error`, and with `value` as it is to be kept: bytes, text, or a struct read from JSON.

    `value` stays as it is where there is an error. A record with no value (a deletion) is no error, and kept.
    """
    if values == "binary":
        return records.withColumn("error", sf.lit(None).cast("string")).withColumn("kept", sf.col("value"))
    text = sf.col("value").cast("string")
    if values == "string":
        wrong = sf.when(~sf.is_valid_utf8(text), sf.lit("the value is not UTF-8"))
        return records.withColumn("error", wrong).withColumn("kept", sf.when(wrong.isNull(), text))
    assert schema is not None
    read = parsing.parsed(records.withColumn("__text", text), "__text", schema, "json", {})
    fault = sf.when(sf.col("value").isNotNull(), sf.col("error"))
    return read.withColumn("error", fault).withColumnRenamed("row", "kept").drop("__text")


def rows(read: DataFrame, folders: tuple[str, ...] = ("topic", "date"), *, refusing: bool = False) -> DataFrame:
    """Records without error as rows of the archive, with the columns of `folders` in the end.

    With `refusing` the first record with an error ends the job with its topic, partition, offset and error.
    """
    if refusing:
        read = read.withColumn("error", _refused(sf.col("error")))
    found = read.where(sf.col("error").isNull()).withColumn("value", sf.col("kept"))
    found = found.withColumn("date", sf.to_date("timestamp")).withColumn("hour", sf.hour("timestamp"))
    kept = [name for name in COLUMNS if name not in folders and name in found.columns]
    return found.select(*kept, *folders)


def _refused(error: Column) -> Column:
    where = sf.format_string("topic '%s', partition %d, offset %d", "topic", "partition", "offset")
    hint = sf.lit("; give --dead-letter-topic to go on past such records")
    return sf.when(error.isNotNull(), sf.raise_error(sf.concat(where, sf.lit(": "), error, hint))).cast("string")


def letters(read: DataFrame) -> DataFrame:
    """Records with an error as dead letters, with the headers that they had before those that tell the error."""
    told = dead_letters.of_record(NAME, sf.col("error"))
    if "headers" in read.columns:
        told = sf.concat(sf.coalesce(sf.col("headers"), sf.array().cast(dead_letters.HEADERS_TYPE)), told)
    return read.where(sf.col("error").isNotNull()).select("key", "value", told.alias("headers"))
