"""Range: each member gets one range of consecutive partitions of each topic.

    n = partitions div members, m = partitions mod members
    member i (from 0) gets n + 1 partitions if i < m, else n, from n * i + min(i, m) on

The rule applies topic by topic, so partitions of the same number of several topics belong to the same member. Where
racks matter (KIP-881), each member gets the same number of partitions, first those with a replica in its rack.
Topics with equal partition counts and the same members stay co-partitioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import Assignment, GroupMember, Racks, StatelessAssignor, by_instance
from pybroker.client.assignors.racks import NO_RACKS, racks_matter


class RangeAssignor(StatelessAssignor):
    """Kafka's `range`."""

    name = "range"

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """Assign as Kafka's assignor: members sorted by instance id, then by member id."""
        return self.assign_by_racks(partitions, members, NO_RACKS)

    def assign_by_racks(
        self, partitions: Mapping[str, int], members: Mapping[str, GroupMember], racks: Racks
    ) -> Assignment:
        """Assign as `assign`, with the racks of the partitions' replicas."""
        assignment: Assignment = {member_id: [] for member_id in members}
        ordered = dict(sorted(members.items(), key=by_instance))
        topics = [_Topic(topic, count, ordered, racks) for topic, count in partitions.items()]
        rack_aware = any(topic.by_racks for topic in topics)
        if rack_aware:
            for together in _go_together(topics):
                _match_racks(together)
        for topic in topics:
            topic.deal()
            for member_id, given in topic.given.items():
                assignment[member_id] += given
        if rack_aware:
            for given in assignment.values():
                given.sort(key=lambda p: (p.topic, p.partition))
        return assignment


class _Topic:
    """One topic while its partitions are assigned."""

    def __init__(self, name: str, count: int, members: Mapping[str, GroupMember], racks: Racks) -> None:
        self.takers = {m: member.rack or None for m, member in members.items() if name in member.topics}
        """The members subscribed to it, in order, with their racks."""
        self.left = {TopicPartition(name, index): None for index in range(count)}
        self.given: dict[str, list[TopicPartition]] = {member_id: [] for member_id in self.takers}
        self.least, self.with_one_more = divmod(count, len(self.takers)) if self.takers else (0, 0)
        named = {rack for rack in self.takers.values() if rack is not None}
        self.racks = {partition: racks.get(partition, frozenset()) for partition in self.left} if named else {}
        self.by_racks = racks_matter(named, self.left, self.racks)
        self._name = name

    def partition(self, index: int) -> TopicPartition:
        return TopicPartition(self._name, index)

    def may_get(self, member_id: str) -> int:
        """Return the number of further partitions that a member may get."""
        return max(0, self.least + (self.with_one_more > 0) - len(self.given[member_id]))

    def is_near(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether a replica is in the member's rack; a member without a rack is near to all partitions."""
        rack = self.takers[member_id]
        return rack is None or rack in self.racks.get(partition, ())

    def give(self, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        given = self.given[member_id]
        for partition in partitions:
            given.append(partition)
            del self.left[partition]
        self.with_one_more -= len(given) > self.least

    def deal(self, *, near_only: bool = False) -> None:
        """Assign to each member in order as many of the remaining partitions as it may get."""
        for member_id in self.takers:
            fits = [p for p in self.left if not near_only or self.is_near(member_id, p)][: self.may_get(member_id)]
            if fits:
                self.give(member_id, fits)


def _go_together(topics: Iterable[_Topic]) -> list[list[_Topic]]:
    """Group topics with equal members and partition counts, which are co-partitioned."""
    groups: dict[tuple[object, ...], list[_Topic]] = {}
    for topic in topics:
        groups.setdefault((*topic.takers.items(), len(topic.racks)), []).append(topic)
    return list(groups.values())


def _match_racks(together: list[_Topic]) -> None:
    if len(together) == 1:
        [topic] = together
        if topic.by_racks:
            topic.deal(near_only=True)
        return
    takers = dict.fromkeys(together[0].takers)
    for index in range(len(together[0].racks)):
        near = (m for m in takers if all(t.is_near(m, t.partition(index)) and t.may_get(m) > 0 for t in together))
        member_id = next(near, None)
        if member_id is None:
            continue
        for topic in together:
            topic.give(member_id, [topic.partition(index)])
        if not any(topic.may_get(member_id) > 0 for topic in together):
            del takers[member_id]
