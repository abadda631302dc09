"""The data source as Spark meets it: `spark.read.format("pybroker")` and its three sisters.

Owns which reader or writer a job gets. Every refusal that needs no cluster is made here or below, before a task runs.
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
    """Topics as DataFrames. Registered once in a session by `pybroker_spark.register`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        log_as_spark()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Spark's other processes get a copy."""
        self.__dict__.update(state)
        log_as_spark()

    @classmethod
    def name(cls) -> str:
        """The word for `format`."""
        return "pybroker"

    def schema(self) -> StructType:
        """The columns of a read to which the user gave no schema. Raises OptionError."""
        if catalog_tables.is_table(self.options):
            options = catalog_tables.table_options(self.options)
            return catalog_tables.with_options(read_schema(parse_read(options)), options)
        return read_schema(parse_read(self.options))

    def reader(self, schema: StructType) -> BatchReader:
        """For `spark.read`. Raises OptionError."""
        options = parse_read(catalog_tables.completed(self.options, schema))
        options.check_batch()
        warn_of_unused(FetcherSettings, options.properties)
        return BatchReader(options, read_columns(options, schema))

    def streamReader(self, schema: StructType) -> StreamReader | RefusedReader:
        """For `spark.readStream`. What is refused is raised by the reader, as OptionError."""
        try:
            options = parse_read(catalog_tables.completed(self.options, schema))
            options.check_stream()
            reader = StreamReader(options, read_columns(options, schema))
        except OptionError as error:
            return RefusedReader(error)
        warn_of_unused(FetcherSettings, options.properties)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """For `df.write`. Raises OptionError."""
        if overwrite:
            raise OptionError("mode=overwrite: records of a topic are not replaced; must be append")
        options = parse_write(catalog_tables.completed(self.options, schema))
        warn_of_unused(ProducerSettings, options.properties)
        return BatchWriter(options, written_columns(schema, options.topic))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: ARG002 (Spark's arguments)
        """For `df.writeStream`; output mode `complete` appends what each batch has. Raises OptionError."""
        return make(catalog_tables.completed(self.options, schema), schema)


_REDACTION = "spark.sql.redaction.options.regex"


def register(spark: SparkSession) -> None:
    """Make the format `pybroker` known to a session, and let it hand filters to sources in Python.

    Without that setting PySpark refuses a reader that takes them. Plans of the session hide options with secrets.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    hidden = spark.conf.get(_REDACTION) or ""
    if catalog_tables.SECRETS not in hidden:
        spark.conf.set(_REDACTION, f"{hidden}|{catalog_tables.SECRETS}" if hidden else catalog_tables.SECRETS)
    spark.dataSource.register(PybrokerDataSource)
