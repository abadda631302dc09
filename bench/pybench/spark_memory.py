"""A data source that reads from memory: the upper limit of any Arrow source on a machine.

Each task repeatedly yields one prebuilt batch with the columns and sizes of the benchmark's topic, so that the time is
Spark's own cost. Imported by Spark's workers, and by `pybench.spark_source` only if PySpark is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

BATCH_ROWS = 10_000
"""The batch size of the data source `pybroker`, in rows."""


class MemoryDataSource(DataSource):
    """`spark.read.format("pybench-memory")` with the options `rows`, `tasks` and `size`. The caller sets the schema."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "pybench-memory"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`."""
        return _MemoryReader(dict(self.options), schema.fieldNames())


class _MemoryReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str], columns: list[str]) -> None:
        self.rows, self.tasks, self.size = (int(options[name]) for name in ("rows", "tasks", "size"))
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        """Return partitions of equal size."""
        return [InputPartition(self.rows // self.tasks + (task < self.rows % self.tasks)) for task in range(self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the same batch repeatedly, and a slice of it for the remaining rows."""
        batch = _batch(self.columns, self.size)
        whole, rest = divmod(partition.value, BATCH_ROWS)
        for _ in range(whole):
            yield batch
        if rest:
            yield batch.slice(0, rest)


def _batch(columns: list[str], size: int) -> pa.RecordBatch:
    rows = BATCH_ROWS
    arrays = {
        "key": pa.nulls(rows, pa.binary()),
        "value": pa.array([b"x" * size] * rows, pa.binary()),
        "topic": pa.array(["bench-0"] * rows),
        "partition": pa.array([0] * rows, pa.int32()),
        "offset": pa.array(range(rows), pa.int64()),
        "timestamp": pa.array(range(rows), pa.timestamp("us", "UTC")),
        "timestampType": pa.array([0] * rows, pa.int32()),
    }
    return pa.record_batch([arrays[name] for name in columns], names=columns)
