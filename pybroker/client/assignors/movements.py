"""Partitions that one assignment has moved between members.

Two members must not swap partitions of a topic. Where a partition is to move from A to B and another of the same
topic has moved from B to A, the latter moves back instead. Owns the records that this rule needs.
"""

from __future__ import annotations

from typing import NamedTuple

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.java.hash_order import HashOrderedSet, partition_hash


class _Direction(NamedTuple):
    source: str
    target: str


class Movements:
    """The moves of an assignment, by partition, and by topic and direction."""

    def __init__(self) -> None:
        self._directions: dict[TopicPartition, _Direction] = {}
        self._by_topic: dict[str, dict[_Direction, HashOrderedSet[TopicPartition]]] = {}

    def better(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return a partition of the topic whose move this reverts, or else `partition` itself."""
        if partition in self._directions:
            source = self._directions[partition].source
        back = self._by_topic.get(partition.topic, {}).get(_Direction(target, source))
        return partition if back is None else back.first()

    def note(self, partition: TopicPartition, source: str, target: str) -> None:
        """Record the move of a partition."""
        earlier = self._directions.pop(partition, None)
        if earlier is not None:
            directions = self._by_topic[partition.topic]
            directions[earlier].remove(partition)
            if not directions[earlier]:
                del directions[earlier]
            source = earlier.source
            if source == target:
                return
        way = self._directions[partition] = _Direction(source, target)
        directions = self._by_topic.setdefault(partition.topic, {})
        directions.setdefault(way, HashOrderedSet(partition_hash)).add(partition)
