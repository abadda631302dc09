"""When the leader epochs of partitions began, read from the metadata logs of brokers that do not run.

A leader epoch begins with the record of the partition, and with each change of its leader (KIP-631).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pybroker.protocol.messages.records.frame import decode_record
from tests.chaos.history import LeaderEpoch, Where
from tests.support.batches import read_batches

_IS_CONTROL = 1 << 5
_NO_LEADER_CHANGE = -2


def leader_epochs(directories: Iterable[Path], clock_s: float) -> dict[Where, list[LeaderEpoch]]:
    """Return the leader epochs of each partition, in their order.

    `directories` are those of the metadata log, one for each broker; the earliest time counts. `clock_s` is what a
    time of the wall clock exceeds the same time of the history by, in seconds.
    """
    began: dict[Where, dict[int, float]] = defaultdict(dict)
    for directory in directories:
        for where, epoch, at_ms in _changes(directory):
            at = at_ms / 1000 - clock_s
            began[where][epoch] = min(at, began[where].get(epoch, at))
    return {where: [LeaderEpoch(epoch, at) for epoch, at in sorted(epochs.items())] for where, epochs in began.items()}


def _changes(directory: Path) -> Iterator[tuple[Where, int, int]]:
    """Return partition, leader epoch and milliseconds of each beginning in one log, in its order."""
    names: dict[Any, str] = {}
    epochs: dict[Where, int] = {}
    for batch in _batches(directory):
        if batch.attributes & _IS_CONTROL:
            continue
        for value in batch.values:
            record: Any = decode_record(value or b"")
            kind = type(record).__name__
            if kind == "TopicRecord":
                names[record.topic_id] = record.name
                continue
            if kind not in ("PartitionRecord", "PartitionChangeRecord") or record.topic_id not in names:
                continue
            where = Where(names[record.topic_id], record.partition_id)
            if kind == "PartitionRecord":
                epochs[where] = record.leader_epoch
            elif record.leader == _NO_LEADER_CHANGE:
                continue
            else:
                epochs[where] += 1
            yield where, epochs[where], batch.base_timestamp


def _batches(directory: Path) -> Iterator[Any]:
    for segment in sorted(directory.glob("*.log")):
        yield from read_batches(segment.read_bytes())
