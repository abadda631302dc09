"""Ingest: files of CSV, JSON lines, text or Parquet to a topic, and invalid rows to a dead-letter topic.

    files -> numbered rows -> row or error -> record or dead letter -> topics

Without a checkpoint the current files are read once, as a batch. With one it is a stream: each file is read exactly
once, also after a restart, and later files are read when they appear. Valid records and dead letters are one write,
so that no row is lost between two.

Owns the conversion from a row to a record. Must not know how a line is parsed (`parsing`) or numbered (`file_rows`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import Observation
from pyspark.sql import functions as sf

from pybroker_spark.pipelines import columns, dead_letters, file_rows, job, kinds, parsing, streams, topics
from pybroker_spark.pipelines.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

NAME: Final = "ingest"
DESCRIPTION = "Send the rows of files to a topic, and rows that cannot be read to a dead-letter topic."

MAX_REQUEST_SIZE: Final = 1_048_576
"""Kafka's default of `max.request.size`."""

RECORD_OVERHEAD: Final = 61 + 21 + 5 + 5 + 1
"""Maximum overhead of a batch of one record over key and value: the batch's header, the record's, three lengths."""


def read_lines(
    lines: DataFrame, schema: StructType | None, form: str, *, header: bool = False, **options: str
) -> DataFrame:
    """Return numbered lines as (value, file, block, line, row, error): the value for the topic, or the error.

    A line of text is the value itself. A line of CSV becomes a JSON object; a line of JSON is unchanged unless it
    does not match the schema. Blank lines are skipped, and with `header` the first line of each file.
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
    timestamp: str | None = None,
    partition: str | None = None,
    headers: str | None = None,
    max_request_size: int = MAX_REQUEST_SIZE,
) -> DataFrame:
    """Return rows as records (topic, key, value, headers, error), for `topic` or `dead_letter_topic`.

    `key`, `timestamp`, `partition` and `headers` are paths to columns of the row; records have the columns
    `timestamp` and `partition` where those are given. Without a dead-letter topic the first invalid row fails the
    job with its file, line and error.
    """
    rows = _with_parts(rows, key=key, timestamp=timestamp, partition=partition, headers=headers)
    more = [name for name, path in (("timestamp", timestamp), ("partition", partition)) if path is not None]
    size = sf.octet_length("value") + sf.coalesce(sf.octet_length("key"), sf.lit(0)) + RECORD_OVERHEAD
    if headers is not None:
        size += columns.size_of(sf.col("given_headers"))
    too_large = sf.col("error").isNull() & (size > max_request_size)
    fault = sf.concat(sf.lit("the record has "), size, sf.lit(f" bytes, more than max.request.size={max_request_size}"))
    error = sf.when(too_large, fault).otherwise(sf.col("error"))
    if dead_letter_topic is None:
        value = sf.when(error.isNull(), sf.col("value")).otherwise(_refused(error))
        return rows.select(
            sf.lit(topic).alias("topic"),
            "key",
            value.alias("value"),
            sf.col("given_headers").alias("headers"),
            sf.lit(None).cast("string").alias("error"),
            *more,
        )
    letters = dead_letters.of_line(
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
        sf.when(error.isNotNull(), letters).otherwise(sf.col("given_headers")).alias("headers"),
        error.alias("error"),
        *(sf.when(error.isNull(), sf.col(name)).alias(name) for name in more),
    )


def _with_parts(rows: DataFrame, **paths: str | None) -> DataFrame:
    """Return rows with the columns `key` and `given_headers`, and `timestamp` and `partition` where they are given."""
    parts = {
        "key": sf.lit(None).cast("binary"),
        "headers": sf.lit(None).cast(dead_letters.HEADERS_TYPE),
    }
    if any(path is not None for path in paths.values()):
        schema = columns.of_type(rows.schema["row"].dataType)
        parts |= {name: _PARTS[name](schema, "row", path) for name, path in paths.items() if path is not None}
    return rows.withColumns({"given_headers" if name == "headers" else name: part for name, part in parts.items()})


def _partition(schema: columns.Node, root: str, path: str) -> Column:
    return columns.column(schema, root, path)[0].cast("int")


_PARTS: Final[dict[str, Callable[[columns.Node, str, str], Column]]] = {
    "key": columns.key,
    "timestamp": columns.timestamp,
    "partition": _partition,
    "headers": columns.headers,
}
"""The options that name a column, and the function that converts it."""


def _refused(error: Column) -> Column:
    where = sf.concat(sf.col("file"), sf.lit(", line "), sf.col("line"))
    where = sf.when(sf.col("block") > 0, sf.concat(where, sf.lit(" from byte "), sf.col("block"))).otherwise(where)
    hint = sf.lit("; give --dead-letter-topic to skip such rows")
    return sf.raise_error(sf.concat(where, sf.lit(": "), error, hint))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--source", required=True, metavar="PATH", help="a file, a directory or a glob pattern")
    parser.add_argument("--format", choices=file_rows.FORMATS, required=True, help="format of the files")
    parser.add_argument("--schema", metavar="DDL", help="as 'id INT, name STRING'; inferred from the files if left out")
    parser.add_argument("--header", action="store_true", help="the first line of each CSV file names the columns")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=kinds.pair,
        metavar="K=V",
        help="option of Spark's reader, as sep=;",
    )
    parser.add_argument(
        "--key", metavar="COLUMN", help="column that becomes the records' key; user.id is the field id of column user"
    )
    parser.add_argument(
        "--timestamp", metavar="COLUMN", help="column that becomes the records' timestamp; numbers are milliseconds"
    )
    parser.add_argument("--partition", metavar="COLUMN", help="column with the number of the partition")
    parser.add_argument(
        "--headers", metavar="COLUMN", help="column that becomes the records' headers: a map or a struct"
    )
    topics.add_target(parser)
    topics.add_dead_letters(parser)
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="run as a stream that stores in DIR which files it has read"
    )
    parser.add_argument("--max-files-per-trigger", type=kinds.count, metavar="N", help="files in a micro-batch")
    streams.add_trigger(parser)


def check(arguments: argparse.Namespace) -> None:
    """Validate options before Spark starts."""
    if arguments.checkpoint is None and (arguments.available_now or arguments.interval):
        option = "--available-now" if arguments.available_now else "--interval"
        raise UsageError(f"{option} is for streams: give --checkpoint DIR, or leave it out to read the files once")
    if arguments.header and arguments.format != "csv":
        raise UsageError(f"--header is for CSV, and --format is {arguments.format}")
    paths = _paths(arguments)
    for option, path in paths.items():
        if path is not None and arguments.format == "text":
            raise UsageError(f"--{option}: text has no column '{path}'; its lines are values as they are")
    if arguments.schema is not None and (schema := columns.of_ddl(arguments.schema)) is not None:
        columns.check(schema, paths)


def _paths(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Return the columns that the options name."""
    return {option: getattr(arguments, option) for option in _PARTS}


def run(spark: SparkSession, arguments: argparse.Namespace) -> str:
    """Run the query from files to topics, and return the text to print."""
    rows = _rows(spark, arguments)
    settings = dict(arguments.command_property)
    found = records(
        rows,
        arguments.topic,
        dead_letter_topic=arguments.dead_letter_topic,
        max_request_size=int(settings.get("max.request.size", MAX_REQUEST_SIZE)),
        **_paths(arguments),
    )
    counts = [sf.count(sf.lit(1)).alias("rows"), sf.count("error").alias("dead")]
    if arguments.checkpoint is None:
        observation = Observation(NAME)
        topics.write(found.observe(observation, *counts).drop("error"), arguments)
        return summary(observation.get["rows"], observation.get["dead"], arguments)
    ended = streams.run(topics.write_stream(found.observe(NAME, *counts).drop("error"), arguments), arguments)
    return summary(ended.observed["rows"], ended.observed["dead"], arguments)


def summary(rows: int, dead: int, arguments: argparse.Namespace) -> str:
    """Return the result in one line."""
    text = f"{rows:,} rows read, {rows - dead:,} records to topic '{arguments.topic}'"
    if arguments.dead_letter_topic is not None:
        text += f", {dead:,} dead letters to topic '{arguments.dead_letter_topic}'"
    return text


def _rows(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    form, path = arguments.format, arguments.source
    options = dict(arguments.option)
    schema = None
    if form != "text":
        inferring = {**options, "header": str(arguments.header).lower()}
        schema = file_rows.schema_of(spark, path, form, arguments.schema, inferring)
        columns.check(columns.of_type(schema), _paths(arguments))
    streaming = arguments.checkpoint is not None
    reader = spark.readStream if streaming else spark.read
    if streaming and arguments.max_files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", arguments.max_files_per_trigger)
    if form == "parquet":
        assert schema is not None
        return file_rows.parquet_rows(reader.schema(schema).options(**options).parquet(path)).withColumn(
            "error", sf.lit(None).cast("string")
        )
    return read_lines(file_rows.lines(reader.text(path)), schema, form, header=arguments.header, **options)


JOB: Final = job.Job(NAME, DESCRIPTION, add_arguments, run, check)

if __name__ == "__main__":
    sys.exit(job.main(JOB))
