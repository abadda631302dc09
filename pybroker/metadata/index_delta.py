"""The delta of the partition index.

Owns the update of the sets after changes of partitions. Unchanged sets are not copied, so the failure of a broker costs
time proportional to its own partitions, not the cluster's (Kafka's BrokersToIsrs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.metadata.image import NO_LEADER
from pybroker.metadata.partition_index import EMPTY_INDEX, PartitionIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from pybroker.metadata.image import PartitionImage, TopicImage
    from pybroker.metadata.partition_index import PartitionKey

_NONE: AbstractSet[PartitionKey] = frozenset()


class IndexDelta:
    """The changed sets of an index. Each is copied once, at its first change."""

    __slots__ = ("_base", "_brokers", "_displaced", "_leaderless")

    def __init__(self, base: PartitionIndex) -> None:
        self._base = base
        self._brokers: dict[int, set[PartitionKey]] = {}
        self._leaderless: set[PartitionKey] | None = None
        self._displaced: set[PartitionKey] | None = None

    def replace(
        self, topic_id: bytes, before: Mapping[int, PartitionImage], after: Mapping[int, PartitionImage]
    ) -> None:
        """Replace a topic's partitions `before` by those `after`.

        `before` is empty for a new topic, `after` for a removed one.
        """
        if not before:
            self._add_all(topic_id, after)
            return
        for index, partition in after.items():
            old = before.get(index)
            if old is not partition:
                self._change((topic_id, index), old, partition)
        for index, old in before.items():
            if index not in after:
                self._change((topic_id, index), old, None)

    def _add_all(self, topic_id: bytes, partitions: Mapping[int, PartitionImage]) -> None:
        """Add the partitions of a new topic. A fast path, since replaying a log adds very many."""
        for index, partition in partitions.items():
            key = (topic_id, index)
            for broker in _members(partition):
                self._of(broker).add(key)
            if partition.leader != partition.replicas[0]:
                self._displaced_keys().add(key)
                if partition.leader == NO_LEADER:
                    self._leaderless_keys().add(key)

    def build(self) -> PartitionIndex:
        """Return the new index; the base itself without changes."""
        base = self._base
        if not self._brokers and self._leaderless is None and self._displaced is None:
            return base
        by_broker = base.by_broker
        if self._brokers:
            merged = {**by_broker, **self._brokers}
            by_broker = {broker: keys for broker, keys in merged.items() if keys}
        return PartitionIndex(
            by_broker=by_broker,
            leaderless=base.leaderless if self._leaderless is None else self._leaderless,
            displaced=base.displaced if self._displaced is None else self._displaced,
        )

    def _change(self, key: PartitionKey, old: PartitionImage | None, new: PartitionImage | None) -> None:
        if (
            old is None
            or new is None
            or old.isr != new.isr
            or old.eligible_leader_replicas != new.eligible_leader_replicas
        ):
            there, then = _members(old), _members(new)
            for broker in there:
                if broker not in then:
                    self._of(broker).discard(key)
            for broker in then:
                if broker not in there:
                    self._of(broker).add(key)
        was, is_now = old is not None and old.leader == NO_LEADER, new is not None and new.leader == NO_LEADER
        if was is not is_now:
            _put(self._leaderless_keys(), key, is_in=is_now)
        was, is_now = _is_displaced(old), _is_displaced(new)
        if was is not is_now:
            _put(self._displaced_keys(), key, is_in=is_now)

    def _leaderless_keys(self) -> set[PartitionKey]:
        if self._leaderless is None:
            self._leaderless = set(self._base.leaderless)
        return self._leaderless

    def _displaced_keys(self) -> set[PartitionKey]:
        if self._displaced is None:
            self._displaced = set(self._base.displaced)
        return self._displaced

    def _of(self, broker: int) -> set[PartitionKey]:
        keys = self._brokers.get(broker)
        if keys is None:
            keys = self._brokers[broker] = set(self._base.by_broker.get(broker, _NONE))
        return keys


def build_index(topics: Iterable[TopicImage]) -> PartitionIndex:
    """Return the index of the given topics."""
    change = IndexDelta(EMPTY_INDEX)
    for topic in topics:
        change.replace(topic.topic_id, {}, topic.partitions)
    return change.build()


def _members(partition: PartitionImage | None) -> tuple[int, ...]:
    return () if partition is None else partition.isr + partition.eligible_leader_replicas


def _is_displaced(partition: PartitionImage | None) -> bool:
    return partition is not None and partition.leader != partition.replicas[0]


def _put(keys: set[PartitionKey], key: PartitionKey, *, is_in: bool) -> None:
    if is_in:
        keys.add(key)
    else:
        keys.discard(key)
