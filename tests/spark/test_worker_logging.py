"""What the processes of Spark that run Python log: with date, level and logger, as the log of the JVM beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def _warn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Have a warning logged by the data source in a worker; a row with what was written."""
    import contextlib
    import io
    import logging

    from pyspark.sql.types import BinaryType, StructField, StructType

    from pybroker_spark.source.datasource import PybrokerDataSource

    for _ in batches:
        pass
    for name in ("pybroker", "pybroker_spark"):
        logging.getLogger(name).handlers.clear()
    written = io.StringIO()
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "kafka.group.id": "g"}
    with contextlib.redirect_stderr(written):
        PybrokerDataSource(options).reader(StructType([StructField("value", BinaryType())]))
    yield pa.RecordBatch.from_pydict({"text": [written.getvalue()]})


def test_a_warning_has_date_level_and_logger(spark: SparkSession) -> None:
    (row,) = spark.range(0, 1, numPartitions=1).mapInArrow(_warn, "text string").collect()
    line = r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN pybroker_spark\.source\.options: option kafka\.group\.id=g has no .*\n"
    assert re.fullmatch(line, row.text), row.text
