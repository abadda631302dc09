"""Files to rows with their position: (value, file, block, line).

Owns the counting of lines. Spark reads a large file in blocks, each in a task of its own, so a line is numbered from
the start of its block, whose first byte is `block`. In a file of one block (128 MB by default, or compressed) that
is the line number in the file. Rows of Parquet are numbered from the start of the file. Must not know the content of
a line.

Not done: CSV with line breaks inside of quotes; each line is a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from pybroker_spark.pipelines.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FORMATS: Final = ("csv", "json", "text", "parquet")

ROWS_TYPE: Final = "value binary, file string, block bigint, line bigint"


def schema_of(spark: SparkSession, path: str, form: str, given: str | None, options: Mapping[str, str]) -> StructType:
    """Return the user's DDL schema, or the one that Spark infers from all current files.

    Unreadable lines are ignored. Raises UsageError for invalid DDL, or where no data exists to infer from.
    """
    if given is not None:
        return parse_schema(given)
    reader = spark.read.format(form).options(**options)
    if form != "parquet":
        reader = reader.options(mode="DROPMALFORMED", inferSchema="true")
    schema = reader.load(path).schema
    if not schema.fields:
        raise UsageError(f"--source: nothing in '{path}' to infer a schema from: give --schema 'name TYPE, ...'")
    return schema


def parse_schema(given: str) -> StructType:
    """Parse a DDL schema, as `id INT, name STRING`. Raises UsageError."""
    from pyspark.errors import PySparkException

    try:
        schema = StructType.fromDDL(given)
    except PySparkException:
        schema = None
    if not isinstance(schema, StructType):
        raise UsageError(f"--schema: '{given}' is no schema: give names and types, as 'id INT, name STRING'")
    return schema


def lines(source: DataFrame) -> DataFrame:
    """Return the lines of text files as `ROWS_TYPE`; `source` reads the format text, in batch or as a stream."""
    placed = source.select(
        sf.col("value").cast("binary").alias("value"),
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.file_block_start").alias("block"),
    )
    return placed.mapInArrow(numbered, ROWS_TYPE)


def parquet_rows(source: DataFrame) -> DataFrame:
    """Return the rows of Parquet files as `ROWS_TYPE`, with JSON values, and `row`; `source` reads the format."""
    row = sf.struct(*(sf.col(f"`{name}`") for name in source.columns))
    return source.select(
        sf.to_json(row).cast("binary").alias("value"),
        sf.col("_metadata.file_path").alias("file"),
        sf.lit(0).cast("bigint").alias("block"),
        (sf.col("_metadata.row_index") + 1).alias("line"),
        row.alias("row"),
    )


def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number the lines of each run of one file and block; a task reads the runs one after the other."""
    import numpy as np
    import pyarrow as pa

    last: tuple[str, int] | None = None
    before = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        file, block = batch.column("file"), batch.column("block")
        files, blocks = np.asarray(file.dictionary_encode().indices), np.asarray(block)
        changes = np.flatnonzero((files[1:] != files[:-1]) | (blocks[1:] != blocks[:-1])) + 1
        starts = np.concatenate(([0], changes))
        ends = np.concatenate((changes, [batch.num_rows]))
        numbers = np.arange(1, batch.num_rows + 1) - np.repeat(starts, ends - starts)
        if (file[0].as_py(), block[0].as_py()) == last:
            numbers[: ends[0]] += before
        last = (file[-1].as_py(), block[-1].as_py())
        before = int(numbers[-1])
        columns = [batch.column("value"), file, block, pa.array(numbers, pa.int64())]
        yield pa.RecordBatch.from_arrays(columns, names=["value", "file", "block", "line"])
