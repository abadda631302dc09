"""The partition of rows without key or partition: the same one whenever their batch is repeated.

A producer's sticky partitioner depends on the records sent before, and a repetition sends fewer. Rows with a key use
its hash in any case. Must not know Spark or a broker.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def route(batch: pa.RecordBatch, topic: str | None, turn: int, partitions: Callable[[str], int]) -> pa.RecordBatch:
    """Set the partition of every row without key and partition: by round-robin, from `turn`, in its topic."""
    names = batch.schema.names
    free = pc.is_null(batch.column("key")) if "key" in names else pa.array([True] * batch.num_rows)
    if "partition" in names:
        free = pc.and_(free, pc.is_null(batch.column("partition")))
    if not pc.any(free).as_py():
        return batch
    chosen = _chosen(batch, topic, turn, partitions)
    given = batch.column("partition").cast(pa.int32()) if "partition" in names else pa.nulls(batch.num_rows, pa.int32())
    column = pc.if_else(free, chosen, given)
    if "partition" in names:
        return batch.set_column(names.index("partition"), "partition", column)
    return batch.append_column("partition", column)


def topics_of(batch: pa.RecordBatch, topic: str | None) -> list[str]:
    """Return the topics of the rows of a batch."""
    if "topic" not in batch.schema.names:
        return [] if topic is None else [topic]
    named = [topic if name is None else name for name in batch.column("topic").unique().to_pylist()]
    return sorted({name for name in named if name is not None})


def _chosen(batch: pa.RecordBatch, topic: str | None, turn: int, partitions: Callable[[str], int]) -> pa.Array:
    named = [topic] if "topic" not in batch.schema.names else batch.column("topic").unique().to_pylist()
    turns = {
        name: None if (goes := topic if name is None else name) is None else turn % partitions(goes) for name in named
    }
    if len(turns) == 1:
        return pa.array([next(iter(turns.values()))] * batch.num_rows, pa.int32())
    encoded = pc.fill_null(pc.index_in(batch.column("topic"), value_set=pa.array(list(turns), pa.string())), 0)
    return pa.array(list(turns.values()), pa.int32()).take(encoded)
