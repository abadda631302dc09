"""Streams of updates: rows that replace older ones of their key, as in output mode `update`.

Spark supports no updates for a Python sink (its `SupportsStreamingUpdateAsAppend` is for the JVM), so each
micro-batch is written as a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker_spark.source import datasource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FORMAT = "pybroker"


def write_updates(frame: DataFrame, options: Mapping[str, str]) -> DataStreamWriter:
    """Return a stream writer for output mode `update`, with the `options` of a write by the format.

    A micro-batch that is repeated after a crash writes its records again. Readers that keep the newest record of
    each key are not affected.
    """
    datasource.register(frame.sparkSession)

    def write(batch: DataFrame, _number: int) -> None:
        batch.write.format(FORMAT).options(**options).mode("append").save()

    return frame.writeStream.outputMode("update").foreachBatch(write)
