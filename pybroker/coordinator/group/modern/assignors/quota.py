"""`uniform` if all members subscribe to the same topics: every member gets its quota.

    n partitions in all, m members: a quota of n // m each, and one more for n mod m members

Owns which members get one more, which partitions are revoked, and where free ones are assigned. A member keeps its
partitions up to its quota; the extra ones first go to members that have that many already, so that nothing moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.modern.assignors.spec import topic_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.coordinator.group.modern.assignors.spec import Assigned, GroupSpec


def assign_by_quota(spec: GroupSpec) -> dict[str, Assigned]:
    """Return the partitions of each member."""
    topics = sorted(next(iter(spec.members.values())).topics, key=topic_order)
    if not topics:
        return {}
    free = list(_unassigned(spec, topics))
    kept: dict[str, dict[bytes, frozenset[int]]] = {}
    unfilled: list[tuple[str, int]] = []
    least, extra = divmod(sum(spec.partitions[topic] for topic in topics), len(spec.members))
    for place, (member_id, member) in enumerate(spec.members.items()):
        takes_extra = extra > 0
        kept[member_id], capacity, revoked = _keep(member.assigned, frozenset(topics), least + takes_extra)
        free += revoked
        if capacity > 0 and takes_extra and len(spec.members) - place > extra:
            # It has at most the regular quota, and enough members are left for the extra partitions.
            takes_extra = False
            capacity -= 1
        extra -= takes_extra
        if capacity > 0:
            unfilled.append((member_id, capacity))
    _fill(kept, unfilled, free)
    return dict(kept)


def _unassigned(spec: GroupSpec, topics: list[bytes]) -> Iterator[tuple[bytes, int]]:
    for topic in topics:
        taken = frozenset[int]().union(*(member.assigned.get(topic, ()) for member in spec.members.values()))
        yield from ((topic, partition) for partition in range(spec.partitions[topic]) if partition not in taken)


def _keep(
    assigned: Assigned, topics: frozenset[bytes], capacity: int
) -> tuple[dict[bytes, frozenset[int]], int, list[tuple[bytes, int]]]:
    """Return the partitions that a member keeps, its remaining capacity, and the revoked partitions."""
    kept: dict[bytes, frozenset[int]] = {}
    revoked: list[tuple[bytes, int]] = []
    for topic in sorted(topics & assigned.keys(), key=topic_order):
        stay = assigned[topic]
        if len(stay) > capacity:
            partitions = sorted(stay)
            stay = frozenset(partitions[:capacity])
            revoked += [(topic, partition) for partition in partitions[capacity:]]
        capacity -= len(stay)
        if stay:
            kept[topic] = stay
    return kept, capacity, revoked


def _fill(
    kept: dict[str, dict[bytes, frozenset[int]]], unfilled: list[tuple[str, int]], free: list[tuple[bytes, int]]
) -> None:
    start = 0
    for member_id, capacity in unfilled:
        gained: dict[bytes, set[int]] = {}
        for topic, partition in free[start : start + capacity]:
            gained.setdefault(topic, set()).add(partition)
        start += capacity
        has = kept[member_id]
        for topic, partitions in gained.items():
            has[topic] = has.get(topic, frozenset()) | partitions
