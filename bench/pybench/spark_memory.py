"""A data source that reads nothing: the limit of what any Arrow source can reach on a machine.

Each task yields one batch again and again, with the columns and sizes of the benchmark's topic, made once: what it
takes is Spark's own cost. Imported by `pybench.spark_source` only where PySpark is, and by Spark's workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

BATCH_ROWS = 10_000
"""As many as the data source `pybroker` hands over at a time."""


class MemoryDataSource(DataSource):
    """`spark.read.format("pybench-memory")` with the options `rows`, `tasks` and `size`; the schema is the caller's."""

    @classmethod
    def name(cls) -> str:
        """The word for `format`."""
        return "pybench-memory"

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        return _MemoryReader(dict(self.options), schema.fieldNames())


class _MemoryReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str], columns: list[str]) -> None:
        self.rows, self.tasks, self.size = (int(options[name]) for name in ("rows", "tasks", "size"))
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        """Equal shares."""
        return [InputPartition(self.rows // self.tasks + (task < self.rows % self.tasks)) for task in range(self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """One batch, and again, and the rest of it."""
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
