"""Spark's interface of the data source: `spark.read.format("pybroker")`, `readStream`, `write` and `writeStream`.

Owns the choice of the reader or writer. All checks that need no cluster are made here or in called modules, before a
task runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from pybroker.client.settings import FetcherSettings, ProducerSettings
from pybroker_spark.sink.stream_writer import make
from pybroker_spark.source import catalog_tables
from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.options import parse_read, parse_write, warn_of_unused
from pybroker_spark.source.reader import BatchReader
from pybroker_spark.source.schema import read_columns, read_schema, written_columns
from pybroker_spark.source.stream_reader import RefusedReader, StreamReader
from pybroker_spark.source.worker import log_as_spark
from pybroker_spark.source.writer import BatchWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pybroker_spark.sink.stream_writer import StreamWriter


class PybrokerDataSource(DataSource):
    """Topics as DataFrames. `pybroker_spark.register` registers it once in a session."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        log_as_spark()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy in another process of Spark."""
        self.__dict__.update(state)
        log_as_spark()

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "pybroker"

    def schema(self) -> StructType:
        """Return the columns of a read without a user's schema. Raises OptionError."""
        if catalog_tables.is_table(self.options):
            options = catalog_tables.table_options(self.options)
            return catalog_tables.with_options(read_schema(parse_read(options)), options)
        return read_schema(parse_read(self.options))

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of `spark.read`. Raises OptionError."""
        options = parse_read(catalog_tables.completed(self.options, schema))
        options.check_batch()
        warn_of_unused(FetcherSettings, options.properties)
        return BatchReader(options, read_columns(options, schema))

    def streamReader(self, schema: StructType) -> StreamReader | RefusedReader:
        """Return the reader of `spark.readStream`. The reader itself raises OptionError for invalid options."""
        try:
            options = parse_read(catalog_tables.completed(self.options, schema))
            options.check_stream()
            reader = StreamReader(options, read_columns(options, schema))
        except OptionError as error:
            return RefusedReader(error)
        warn_of_unused(FetcherSettings, options.properties)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Return the writer of `df.write`. Raises OptionError."""
        if overwrite:
            raise OptionError("mode=overwrite: records of a topic are not replaced; must be append")
        options = parse_write(catalog_tables.completed(self.options, schema))
        warn_of_unused(ProducerSettings, options.properties)
        return BatchWriter(options, written_columns(schema, options.topic))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: ARG002 (Spark's arguments)
        """Return the writer of `df.writeStream`; output mode `complete` appends every batch. Raises OptionError."""
        return make(catalog_tables.completed(self.options, schema), schema)


_REDACTION = "spark.sql.redaction.options.regex"


def register(spark: SparkSession) -> None:
    """Register the format `pybroker` in a session, and enable filter pushdown for Python sources.

    Without that setting PySpark rejects a reader with filters. Plans of the session then hide options with secrets.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    hidden = spark.conf.get(_REDACTION) or ""
    if catalog_tables.SECRETS not in hidden:
        spark.conf.set(_REDACTION, f"{hidden}|{catalog_tables.SECRETS}" if hidden else catalog_tables.SECRETS)
    spark.dataSource.register(PybrokerDataSource)
