"""Racks in assignments (KIP-881): which members run in a rack of a partition's replicas, and whether racks matter.

Racks matter under the condition of Kafka's assignors: members and replicas share some racks, and not every partition
has a replica in each of them. Contains no algorithm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import GroupMember, Racks

NO_RACKS: Racks = {}


class Nearness:
    """Which members run in a rack of a partition's replicas. Where racks do not matter, no member is far."""

    def __init__(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember], racks: Racks) -> None:
        of_members = {member_id: member.rack for member_id, member in members.items() if member.rack}
        every = [TopicPartition(topic, index) for topic, count in partitions.items() for index in range(count)]
        self.matters = bool(of_members) and racks_matter(set(of_members.values()), every, racks)
        self._members = of_members if self.matters else {}
        self._racks = racks if self.matters else NO_RACKS
        self._in_rack = Counter(self._members.values())

    def is_far(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether a member has a rack, and the partition has no replica there."""
        rack = self._members.get(member_id)
        return rack is not None and rack not in self._racks.get(partition, ())

    def is_near(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether a member has a rack, and the partition has a replica there."""
        return self._members.get(member_id) in self._racks.get(partition, ())

    def takers(self, partition: TopicPartition) -> int:
        """Return the number of members in racks of the partition's replicas."""
        return sum(self._in_rack[rack] for rack in self._racks.get(partition, ()))


def racks_matter(of_members: Collection[str], partitions: Iterable[TopicPartition], racks: Racks) -> bool:
    """Whether racks matter for these members and partitions."""
    found = [racks.get(partition, frozenset()) for partition in partitions]
    every = frozenset().union(*found)
    return not every.isdisjoint(of_members) and any(of_partition != every for of_partition in found)
