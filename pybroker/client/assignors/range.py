"""Range: of each topic, each member gets one run of neighbouring partitions.

    n = partitions div members, m = partitions mod members
    member i (from 0) gets n + 1 partitions if i < m, else n, from n * i + min(i, m) on

Owns that equation, topic by topic, so partitions of the same number of several topics go to the same member.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybroker.client.assignors.assignor import Assignment, GroupMember, StatelessAssignor, by_instance
from pybroker.client.topics import TopicPartition


class RangeAssignor(StatelessAssignor):
    """Kafka's `range`. Racks are not looked at (KIP-881)."""

    name = "range"

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """As Kafka's: members by instance id, then by member id."""
        assignment: Assignment = {member_id: [] for member_id in members}
        ordered = [member_id for member_id, _ in sorted(members.items(), key=by_instance)]
        for topic, count in partitions.items():
            takers = [member_id for member_id in ordered if topic in members[member_id].topics]
            if not takers:
                continue
            least, more = divmod(count, len(takers))
            for place, member_id in enumerate(takers):
                start = least * place + min(place, more)
                end = start + least + (place < more)
                assignment[member_id] += [TopicPartition(topic, index) for index in range(start, end)]
        return assignment
