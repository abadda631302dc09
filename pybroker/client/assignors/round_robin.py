"""Round-robin: all partitions of all topics in a row, dealt to the members in turn.

Owns the dealing. A member that does not want a topic is passed over, and the turn goes on after the one that took.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import Assignment, GroupMember, StatelessAssignor, by_instance


class RoundRobinAssignor(StatelessAssignor):
    """Kafka's `roundrobin`."""

    name = "roundrobin"

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """As Kafka's: topics by name, members by instance id, then by member id."""
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
