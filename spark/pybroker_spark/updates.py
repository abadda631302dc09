"""Streams of updates: rows that replace older ones of their key, as output mode `update` has them.

Spark takes no updates for a sink in Python (its `SupportsStreamingUpdateAsAppend` is for the JVM), so each micro-batch
is written as a batch.
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
    """Return a writer of a stream in output mode `update`, with the `options` of a write by the format.

    A micro-batch that comes again after a crash writes its records again. That changes nothing for readers that keep
    the newest record of each key.
    """
    datasource.register(frame.sparkSession)

    def write(batch: DataFrame, _number: int) -> None:
        batch.write.format(FORMAT).options(**options).mode("append").save()

    return frame.writeStream.outputMode("update").foreachBatch(write)
