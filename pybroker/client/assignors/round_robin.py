"""Round-robin: the sorted partitions of all topics are assigned to the members in rotation.

A member that is not subscribed to a topic is skipped. The rotation continues after the member that got the
partition.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import Assignment, GroupMember, StatelessAssignor, by_instance


class RoundRobinAssignor(StatelessAssignor):
    """Kafka's `roundrobin`."""

    name = "roundrobin"

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """Assign as Kafka's assignor: topics by name, members by instance id, then by member id."""
        assignment: Assignment = {member_id: [] for member_id in members}
        ordered = [member_id for member_id, _ in sorted(members.items(), key=by_instance)]
        wanted = {topic for member in members.values() for topic in member.topics}
        turn = 0
        for topic in sorted(wanted & partitions.keys()):
            for index in range(partitions[topic]):
                while topic not in members[ordered[turn]].topics:
                    turn = (turn + 1) % len(ordered)
                assignment[ordered[turn]].append(TopicPartition(topic, index))
                turn = (turn + 1) % len(ordered)
        return assignment
