"""`uniform` if members subscribe to different topics: balance topic by topic.

    1. a member keeps its partitions of topics that it still subscribes to
    2. free partitions are assigned, topic by topic, to the least loaded subscriber
    3. topic by topic, partitions move from its most to its least loaded subscriber, until no loads differ by two;
       again until a whole round moves nothing, and at most `MAX_ROUNDS` times

Owns that procedure; `load_order` sorts the subscribers by load. Topics with many partitions per subscriber come first,
as they leave the least choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.modern.assignors.load_order import LoadOrder
from pybroker.coordinator.group.modern.assignors.spec import topic_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.coordinator.group.modern.assignors.spec import Assigned, GroupSpec

MAX_ROUNDS = 16
"""Kafka's limit: a nearly balanced assignment now is better than a balanced one later."""

_NOBODY = -1


def assign_balanced(spec: GroupSpec) -> dict[str, Assigned]:
    """Return the partitions of each member."""
    balance = _Balance(spec)
    balance.keep()
    balance.assign_free()
    balance.level_topics()
    return balance.assigned()


class _Balance:
    """An assignment in progress. Members are numbered by their place in the group, which also breaks ties."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._subscribers: dict[bytes, list[int]] = {}
        for place, member in enumerate(spec.members.values()):
            for topic in sorted(member.topics, key=topic_order):
                self._subscribers.setdefault(topic, []).append(place)
        # Invariant: `_loads[place]` is the number of occurrences of `place` in `_owners`.
        self._owners = {topic: [_NOBODY] * spec.partitions[topic] for topic in self._subscribers}
        self._loads = [0] * len(spec.members)

    def keep(self) -> None:
        for place, member in enumerate(self._spec.members.values()):
            for topic in member.topics & member.assigned.keys():
                for partition in member.assigned[topic]:
                    self._move(topic, partition, place)

    def assign_free(self) -> None:
        free = {
            topic: [partition for partition, owner in enumerate(owners) if owner == _NOBODY]
            for topic, owners in self._owners.items()
        }
        for topic in self._most_constrained_first(topic for topic, partitions in free.items() if partitions):
            order = LoadOrder(self._loads, self._subscribers[topic])
            for partition in free[topic]:
                self._move(topic, partition, order.next_least_loaded())

    def level_topics(self) -> None:
        topics = self._most_constrained_first(
            topic for topic, subscribers in self._subscribers.items() if len(subscribers) > 1
        )
        # A round ends at the topic that moved a partition last: all topics since then were balanced already.
        last_moved = -1
        for _ in range(MAX_ROUNDS):
            for place, topic in enumerate(topics):
                if place == last_moved:
                    return
                if self._level(topic) or last_moved == -1:
                    last_moved = place

    def assigned(self) -> dict[str, Assigned]:
        result: list[dict[bytes, set[int]]] = [{} for _ in self._spec.members]
        for topic, owners in self._owners.items():
            for partition, place in enumerate(owners):
                result[place].setdefault(topic, set()).add(partition)
        return {
            member_id: {topic: frozenset(partitions) for topic, partitions in result[place].items()}
            for place, member_id in enumerate(self._spec.members)
        }

    def _level(self, topic: bytes) -> int:
        """Move partitions of one topic until its subscribers' loads are as even as possible; return their number."""
        order = LoadOrder(self._loads, self._subscribers[topic])
        if order.spread <= 1:
            return 0
        left: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            left.setdefault(owner, []).append(partition)
        moved = 0
        while not order.is_level:
            giver = order.next_most_loaded()
            while giver is not None and not left.get(giver):
                order.exclude_most_loaded()
                giver = order.next_most_loaded()
            if giver is None:
                break
            partition = left[giver].pop()
            taker = order.next_least_loaded()
            if order.is_level:
                break
            self._move(topic, partition, taker)
            moved += 1
        return moved

    def _move(self, topic: bytes, partition: int, place: int) -> None:
        owner = self._owners[topic][partition]
        if owner != _NOBODY:
            self._loads[owner] -= 1
        self._owners[topic][partition] = place
        self._loads[place] += 1

    def _most_constrained_first(self, topics: Iterable[bytes]) -> list[bytes]:
        def key(topic: bytes) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self._subscribers[topic])
            return -self._spec.partitions[topic] / subscribers, subscribers, topic_order(topic)

        return sorted(topics, key=key)
