"""Archive: topics to Parquet in folders by topic and date, and unreadable records to a dead-letter topic.

    records (topics) -> columns or error -> Parquet in folders, exactly once | dead letters (topic)

A stream that ends when everything has been read (`--available-now`) or never. The files are written by Spark's own
sink: a file of an unfinished micro-batch is not in `_spark_metadata`, so readers that use it see each record once.
Dead letters are a second query with a checkpoint of its own, so each of the two resumes at its own offset.

Owns the columns of the archive. Must not know how records are transferred.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pybroker_spark.pipelines import dead_letters, file_rows, job, kinds, parsing, streams, topics
from pybroker_spark.pipelines.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

NAME: Final = "archive"
DESCRIPTION = "Write the records of topics to Parquet files, in folders by topic and date."

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
FOLDERS: Final = ("topic", "partition", "date", "hour")
VALUES: Final = ("binary", "string", "json")


def read_values(records: DataFrame, values: str, schema: StructType | None = None) -> DataFrame:
    """Return records with `error`, and with `value` in the archive's type: bytes, text, or a struct parsed from JSON.

    `value` is unchanged where there is an error. A record with a null value (a tombstone) is no error, and kept.
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
    """Return records without error as rows of the archive, with the columns of `folders` last.

    With `refusing` the first record with an error fails the job with its topic, partition, offset and error.
    """
    if refusing:
        kept = sf.when(sf.col("error").isNull(), sf.col("kept")).otherwise(_refused(sf.col("error")))
        found = read.withColumn("value", kept)
    else:
        found = read.where(sf.col("error").isNull()).withColumn("value", sf.col("kept"))
    found = found.withColumn("date", sf.to_date("timestamp")).withColumn("hour", sf.hour("timestamp"))
    columns = [name for name in COLUMNS if name not in folders and name in found.columns]
    return found.select(*columns, *folders)


def _refused(error: Column) -> Column:
    where = sf.format_string("topic '%s', partition %d, offset %d", "topic", "partition", "offset")
    hint = sf.lit("; give --dead-letter-topic to skip such records")
    return sf.raise_error(sf.concat(where, sf.lit(": "), error, hint))


def letters(read: DataFrame) -> DataFrame:
    """Return records with an error as dead letters; the headers about the error follow the record's own."""
    headers = dead_letters.of_record(NAME, sf.col("error"))
    if "headers" in read.columns:
        headers = sf.concat(sf.coalesce(sf.col("headers"), sf.array().cast(dead_letters.HEADERS_TYPE)), headers)
    return read.where(sf.col("error").isNotNull()).select("key", "value", headers.alias("headers"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    topics.add_source(parser)
    parser.add_argument("--path", required=True, metavar="DIR", help="directory of the archive")
    parser.add_argument(
        "--partition-by",
        type=folders,
        default=("topic", "date"),
        metavar="COLUMNS",
        help=f"folders: some of {', '.join(FOLDERS)}, separated by commas (default: topic,date)",
    )
    parser.add_argument(
        "--values", choices=VALUES, default="binary", help="type of the column value (default: binary, unchanged)"
    )
    parser.add_argument(
        "--schema", metavar="DDL", help="schema of the values with --values json, as 'id INT, name STRING'"
    )
    topics.add_dead_letters(parser)
    topics.add_creation(parser)
    streams.add_arguments(parser)


def folders(text: str) -> tuple[str, ...]:
    """Parse an option with the columns of folders."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in FOLDERS:
            raise kinds.wrong(f"'{name}' is no column for folders: there are {', '.join(FOLDERS)}")
    if len(set(names)) < len(names):
        raise kinds.wrong(f"'{text}' names a column twice")
    return names


def check(arguments: argparse.Namespace) -> None:
    """Validate options before Spark starts."""
    if (arguments.values == "json") != (arguments.schema is not None):
        raise UsageError(
            "--values json needs --schema, as 'id INT, name STRING'"
            if arguments.schema is None
            else f"--schema is for --values json, and --values is {arguments.values}"
        )


def run(spark: SparkSession, arguments: argparse.Namespace) -> str:
    """Run the queries between topics and files, and return the text to print."""
    schema = None if arguments.schema is None else file_rows.parse_schema(arguments.schema)
    dead = arguments.dead_letter_topic if arguments.values != "binary" else None
    read = read_values(topics.read_stream(spark, arguments, *COLUMNS), arguments.values, schema)
    counted = sf.count(sf.lit(1)).alias("rows")
    kept = rows(read, arguments.partition_by, refusing=dead is None).observe(NAME, counted)
    files = kept.writeStream.format("parquet").option("path", arguments.path).partitionBy(*arguments.partition_by)
    queries = [(files, f"{arguments.checkpoint}/rows")]
    if dead is not None:
        found = letters(read).observe(f"{NAME}-dead", sf.count(sf.lit(1)).alias("dead"))
        queries.append((topics.write_stream(found, arguments, dead), f"{arguments.checkpoint}/dead-letters"))
    ended = streams.run_all(queries, arguments)
    text = f"{ended[0].observed['rows']:,} records to '{arguments.path}'"
    if dead is not None:
        text += f", {ended[1].observed['dead']:,} dead letters to topic '{dead}'"
    return text


JOB: Final = job.Job(NAME, DESCRIPTION, add_arguments, run, check)

if __name__ == "__main__":
    sys.exit(job.main(JOB))
