"""The assignor `range`: neighbouring partitions of each topic, topic by topic.

    members of a topic in order, n partitions, m members:
    each gets n // m neighbouring partitions, each of the first n mod m one more

Owns that equation. Members have the same order for every topic, first static ones by instance id, then others by member
id, so that topics with the same number of partitions are assigned alike and can be joined. Previous assignments are
ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.coordinator.group.modern.assignors.spec import Assigned, GroupSpec, MemberSpec


def assign_range(spec: GroupSpec) -> dict[str, Assigned]:
    """Return the partitions of each member."""
    assigned: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in spec.members}
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in sorted(spec.members.items(), key=_standing):
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(member_id)
    for topic, member_ids in subscribers.items():
        least, extra = divmod(spec.partitions[topic], len(member_ids))
        start = 0
        for place, member_id in enumerate(member_ids):
            end = start + least + (place < extra)
            if start < end:
                assigned[member_id][topic] = frozenset(range(start, end))
            start = end
    return dict(assigned)


def _standing(entry: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = entry
    return (True, member_id) if member.instance_id is None else (False, member.instance_id)
