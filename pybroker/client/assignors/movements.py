"""Partitions that one assignment has moved from member to member.

Two members must not swap partitions of a topic for nothing: where one is to go from A to B and another of the topic has
already gone from B to A, that one goes back instead. Owns the records that this needs.
"""

from __future__ import annotations

from typing import NamedTuple

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.java.hash_order import HashOrderedSet, partition_hash


class _Way(NamedTuple):
    source: str
    target: str


class Movements:
    """What was moved, by partition, and by topic and way."""

    def __init__(self) -> None:
        self._ways: dict[TopicPartition, _Way] = {}
        self._by_topic: dict[str, dict[_Way, HashOrderedSet[TopicPartition]]] = {}

    def better(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """The partition to move in place of `partition`: one that comes back by it, if there is one."""
        if partition in self._ways:
            source = self._ways[partition].source
        back = self._by_topic.get(partition.topic, {}).get(_Way(target, source))
        return partition if back is None else back.first()

    def note(self, partition: TopicPartition, source: str, target: str) -> None:
        """A partition is moved."""
        earlier = self._ways.pop(partition, None)
        if earlier is not None:
            ways = self._by_topic[partition.topic]
            ways[earlier].remove(partition)
            if not ways[earlier]:
                del ways[earlier]
            source = earlier.source
            if source == target:
                return
        way = self._ways[partition] = _Way(source, target)
        ways = self._by_topic.setdefault(partition.topic, {})
        ways.setdefault(way, HashOrderedSet(partition_hash)).add(partition)
