"""Cooperative sticky: as sticky, but members keep their partitions while the group rebalances (KIP-429).

A partition that moves between members is assigned to neither in the rebalance that revokes it. After the revocation
the old owner joins again, and the next rebalance assigns the partition to its new owner.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import Assignment, GroupMember, Racks
from pybroker.client.assignors.equal_subscriptions import Transfers
from pybroker.client.assignors.holdings import NO_GENERATION, Claim, Holdings
from pybroker.client.assignors.racks import NO_RACKS
from pybroker.client.assignors.sticky import assign_sticky


class CooperativeStickyAssignor:
    """Kafka's `cooperative-sticky`."""

    name = "cooperative-sticky"
    cooperative = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self) -> bytes | None:
        """Return the generation of this member's partitions, for leaders that do not find it in the subscription."""
        return struct.pack(">i", self._generation)

    def on_assignment(self, _partitions: Sequence[TopicPartition], generation: int, /) -> None:
        """Remember the generation."""
        self._generation = generation

    def assign(self, partitions: Mapping[str, int], members: Mapping[str, GroupMember]) -> Assignment:
        """Assign as Kafka's assignor. Partitions that change their owner are omitted."""
        return self.assign_by_racks(partitions, members, NO_RACKS)

    def assign_by_racks(
        self, partitions: Mapping[str, int], members: Mapping[str, GroupMember], racks: Racks
    ) -> Assignment:
        """Assign as `assign`, with the racks of the partitions' replicas."""
        holdings = Holdings.of(partitions, members, _claim)
        assignment, transfers = assign_sticky(partitions, members, holdings, racks)
        for partition, member in (_transfers(members, assignment) if transfers is None else transfers).items():
            assignment[member].remove(partition)
        return assignment


def _claim(member: GroupMember) -> Claim:
    if member.generation is not None:
        return Claim(member.owned, member.generation)
    if member.user_data is None:
        return Claim(member.owned, None)
    generation = struct.unpack_from(">i", member.user_data)[0] if len(member.user_data) >= 4 else NO_GENERATION
    return Claim(member.owned, generation)


def _transfers(members: Mapping[str, GroupMember], assignment: Assignment) -> Transfers:
    """Return the partitions that one member loses and another gains."""
    lost = {p for m, member in members.items() for p in set(member.owned).difference(assignment[m])}
    gained = {p: m for m, partitions in assignment.items() for p in set(partitions).difference(members[m].owned)}
    return {partition: member for partition, member in gained.items() if partition in lost}
