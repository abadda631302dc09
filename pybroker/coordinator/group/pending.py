"""Offsets of open transactions: applied when the producer's transaction commits, and dropped when it aborts.

Owns which of several commits of a partition applies: the last one in the log, transactional or not. Must not know
records, nor how changes are undone: every change uses `put`.

Source: Kafka's OffsetMetadataManager (pendingTransactionalOffsets, openTransactionsByGroup), which compares offsets in
the log. Here the pending commits are numbered to know their order, and an overtaken commit has a flag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue

Partition: TypeAlias = tuple[str, int]
"""Topic and partition."""
_NOTHING: Mapping[Partition, Mapping[int, PendingOffset]] = {}


class PendingOffset(msgspec.Struct, frozen=True, gc=False):
    """An offset that an open transaction has committed."""

    value: OffsetCommitValue
    number: int
    """Incremented with each pending commit of a shard: a lower number is earlier in the log."""
    is_overtaken: bool = False
    """Whether a later commit of the partition has been applied. The partition's offset is unstable all the same."""


class PendingOffsets:
    """The open transactions of one shard."""

    def __init__(self, put: Callable[[dict[Any, Any], Any, Any], None]) -> None:
        """`put` sets the value under a key of a table; None removes it."""
        self._put = put
        # Invariant: no group, partition or producer has an empty table, and both tables have the same offsets.
        self.by_group: dict[str, dict[Partition, dict[int, PendingOffset]]] = {}
        self._by_producer: dict[int, dict[tuple[str, Partition], bool]] = {}
        self._number = 0

    def of_group(self, group_id: str) -> Mapping[Partition, Mapping[int, PendingOffset]]:
        """Return a group's pending offsets by partition and producer id."""
        return self.by_group.get(group_id, _NOTHING)

    def add(self, producer_id: int, group_id: str, partition: Partition, value: OffsetCommitValue) -> None:
        """Add an offset of an open transaction; it replaces an earlier one of the same transaction."""
        self._number += 1
        of_group = self._table(self.by_group, group_id)
        self._put(self._table(of_group, partition), producer_id, PendingOffset(value, self._number))
        self._put(self._table(self._by_producer, producer_id), (group_id, partition), True)

    def overtake(self, group_id: str, partition: Partition, before: int | None = None) -> None:
        """Mark the partition's pending commits as overtaken by an applied one: those `before` a number, or all."""
        pending = self.by_group.get(group_id, {}).get(partition)
        for producer_id, offset in list((pending or {}).items()):
            if not offset.is_overtaken and (before is None or offset.number < before):
                self._put(pending or {}, producer_id, msgspec.structs.replace(offset, is_overtaken=True))

    def forget(self, group_id: str, partition: Partition) -> None:
        """Remove the pending offsets of a partition, of all transactions."""
        for producer_id in list(self.of_group(group_id).get(partition, ())):
            self._take(producer_id, group_id, partition)

    def end(self, producer_id: int) -> list[tuple[str, Partition, PendingOffset]]:
        """Remove and return the offsets of a producer's ended transaction: group, partition and offset of each."""
        taken = []
        for group_id, partition in list(self._by_producer.get(producer_id, ())):
            taken.append((group_id, partition, self.by_group[group_id][partition][producer_id]))
            self._take(producer_id, group_id, partition)
        return taken

    def _take(self, producer_id: int, group_id: str, partition: Partition) -> None:
        of_group = self.by_group[group_id]
        self._put(of_group[partition], producer_id, None)
        if not of_group[partition]:
            self._put(of_group, partition, None)
        if not of_group:
            self._put(self.by_group, group_id, None)
        of_producer = self._by_producer[producer_id]
        self._put(of_producer, (group_id, partition), None)
        if not of_producer:
            self._put(self._by_producer, producer_id, None)

    def _table(self, tables: dict[Any, dict[Any, Any]], key: Any) -> dict[Any, Any]:
        if key not in tables:
            self._put(tables, key, {})
        return tables[key]
