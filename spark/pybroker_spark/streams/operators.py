"""The operators of Spark that run the tasks of a topology: one with state, and one without.

Owns the conversion between rows of Spark and records. A row has the columns of `INPUT`; a result has those of `OUTPUT`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import Row

from pybroker.streams.runtime.collector import ProducedRecord
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker_spark.streams.plan import Plan
from pybroker_spark.streams.task import BatchTask, KeptTask

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import TimerValues

INPUT: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
OUTPUT: Final = (
    "topic string, partition int, key binary, value binary, timestamp long,"
    " headers array<struct<key: string, value: binary>>"
)
_ARROW_OUTPUT: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
_TASK: Final = "task"
_ROW: Final = "row binary"


class TopologyProcessor(StatefulProcessor):
    """Runs the tasks of subtopologies with state. The grouping key is the task id, `subtopology_partition`."""

    def __init__(self, plan: bytes, subtopologies: Iterable[int]) -> None:
        """`plan` is a pickled `Plan`."""
        self._pickled = plan
        self._subtopologies = list(subtopologies)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: a row for each task, and a map for each store."""
        self._plan: Plan = pickle.loads(self._pickled)
        self._kept = handle.getValueState(_TASK, _ROW)
        self._rows = {
            store: handle.getMapState(f"store-{store}", "key binary", _ROW)
            for subtopology in self._subtopologies
            for store in self._plan.stores(subtopology)
        }

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: ARG002, N803 - Spark's names
        """Run one task over its rows of the batch."""
        (task_id,) = key
        subtopology = int(task_id.partition("_")[0])
        found = self._kept.get()
        kept = KeptTask() if found is None else msgspec.msgpack.decode(bytes(found[0]), type=KeptTask)
        task = BatchTask(self._plan, subtopology, task_id, kept)
        task.begin({store: self._rows[store] for store in self._plan.stores(subtopology)})
        for sent in task.run(map(_record, rows)):
            yield Row(**_columns(sent))
        self._kept.update((msgspec.msgpack.encode(task.keep()),))
        task.close()

    def close(self) -> None:
        """Do nothing: each task is closed at the end of its rows."""


def stateless(plan: bytes, subtopology_of: dict[str, int]) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    """Return the function for `mapInArrow` that runs tasks without state.

    Args:
        plan: a pickled `Plan`.
        subtopology_of: the subtopology of each topic.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        loaded: Plan = pickle.loads(plan)
        tasks: dict[str, BatchTask] = {}
        for batch in batches:
            found: dict[str, list[RawRecord]] = {}
            for row in batch.to_pylist():
                found.setdefault(f"{subtopology_of[row['topic']]}_{row['partition']}", []).append(_raw(row))
            for task_id, records in found.items():
                task = tasks.get(task_id)
                if task is None:
                    subtopology = int(task_id.partition("_")[0])
                    task = tasks[task_id] = BatchTask(loaded, subtopology, task_id, KeptTask())
                    task.begin({})
                sent = [_columns(record) for record in task.run(records)]
                if sent:
                    yield pa.RecordBatch.from_pylist(sent, _ARROW_OUTPUT)
        for task in tasks.values():
            task.close()

    return run


def _record(row: Row) -> RawRecord:
    return _raw(row.asDict())


def _raw(row: dict[str, Any]) -> RawRecord:
    headers = tuple((header["key"], _bytes(header["value"])) for header in row["headers"] or ())
    position = row["topic"], row["partition"], row["offset"]
    return RawRecord(*position, row["timestamp"], _bytes(row["key"]), _bytes(row["value"]), headers)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _columns(record: ProducedRecord) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "key": record.key,
        "value": record.value,
        "timestamp": record.timestamp,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
    }
