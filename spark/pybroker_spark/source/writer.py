"""Writes a batch: rows of Arrow batches to topics, at least once, as Spark's Kafka connector does.

Owns the written columns, and the completion of a task: when every record is acknowledged. A retried task writes its
rows again. Exactly once is available for streams: `pybroker_spark.sink`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pybroker.client import Producer
from pybroker_spark.disturbance import UNDISTURBED, Disturbance, log_disturbance
from pybroker_spark.source.options import WriteOptions
from pybroker_spark.source.worker import log_as_spark

_DEFAULTS: Final[dict[str, str]] = {
    # Rows arrive ten thousand at a time: with Kafka's 16 KiB batches they wait for acknowledgements.
    "batch.size": "131072",
    "client.id": "pybroker-spark",
}


@dataclass(slots=True)
class Written(WriterCommitMessage):
    """The result of one task."""

    rows: int
    disturbance: Disturbance = UNDISTURBED


class BatchWriter(DataSourceArrowWriter):
    """Sends the rows of each task with a producer of its own."""

    def __init__(self, options: WriteOptions, columns: list[str]) -> None:
        self.options, self.columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send all rows and wait for their acknowledgement. Raises the error of the first failed record."""
        log_as_spark()
        rows = 0
        with Producer(self.options.bootstrap_servers, {**_DEFAULTS, **self.options.properties}) as producer:
            for batch in iterator:
                rows += len(producer.send_columns(batch.select(self.columns), topic=self.options.topic))
            producer.flush()
            met = Disturbance.of_metrics(producer.metrics())
        return Written(rows, met)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Run on the driver, when every task has written: log the effects of broker failures on the tasks."""
        log_disturbance("the batch", (it.disturbance for it in messages if isinstance(it, Written)))
