"""Sticky assignment where all members subscribe to the same topics: members keep their share, the rest is distributed.

    least = partitions div members, most = least, or one more where they do not divide
    partitions mod members of the members get `most`, the others `least`

Where racks matter (KIP-881), no member keeps a partition without a replica in its rack, and the rest is distributed
within racks first. The algorithm takes time linear in the number of partitions.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import Assignment
from pybroker.client.assignors.holdings import Holdings
from pybroker.client.assignors.racks import Nearness

Transfers = dict[TopicPartition, str]
"""New owner of each partition that moves between members. A cooperative group delays these by one rebalance."""


class _Deal:
    def __init__(self, partitions: Mapping[str, int], holdings: Holdings, nearness: Nearness) -> None:
        self.nearness = nearness
        self.contested = holdings.contested
        self.assignment: Assignment = {member: [] for member in holdings.by_member}
        self.least, self.with_one_more = divmod(sum(partitions.values()), len(self.assignment))
        self.most = self.least + (self.with_one_more > 0)
        self.kept: set[TopicPartition] = set()
        self.revoked: set[TopicPartition] = set()
        self.far: dict[TopicPartition, str] = {}
        """Partitions whose owner does not keep them because they have no replica in its rack."""
        self.below: list[str] = []
        """Members with fewer than `least`."""
        self.at_least: list[str] = []
        """Members with `least` that may get one more."""
        self.transfers: Transfers = {}

    def keep(self, member: str, held: list[TopicPartition]) -> None:
        """Leave a member the partitions that fit in its share, and unassign the rest."""
        near = [p for p in held if not self.nearness.is_far(member, p)]
        self.far |= {p: member for p in held if self.nearness.is_far(member, p)}
        held = sorted((p for p in near if p not in self.contested), key=lambda p: (p.partition, p.topic))
        share = len(held)
        if share < self.least:
            self.below.append(member)
        elif share >= self.most and self.with_one_more > 0:
            self.with_one_more -= 1
            share = self.most
            if self.with_one_more == 0:
                self.at_least.clear()
        else:
            share = self.least
            if self.with_one_more > 0:
                self.at_least.append(member)
        self.assignment[member] += held[:share]
        self.kept.update(held[:share])
        self.revoked.update(held[share:])

    def fill(self, unassigned: list[TopicPartition]) -> None:
        """Distribute round-robin to members below `least`, then one each to members that may get `most`."""
        self.below.sort()
        self.at_least.sort()
        if self.nearness.matters:
            unassigned = self._fill_near(sorted(unassigned, key=self.nearness.takers))
        below, at_least = self.below, self.at_least
        turn = 0
        for partition in unassigned:
            turn = turn if turn < len(below) else 0
            member = below[turn] if below else at_least.pop(0)
            if self._give(member, partition) == self.least:
                del below[turn]
                at_least.append(member)
            else:
                turn += 1

    def _give(self, member: str, partition: TopicPartition) -> int:
        """Assign a partition to a member, and return the number of its partitions."""
        self.assignment[member].append(partition)
        if partition in self.revoked or partition in self.contested or self.far.get(partition, member) != member:
            self.transfers[partition] = member
        return len(self.assignment[member])

    def _fill_near(self, unassigned: list[TopicPartition]) -> list[TopicPartition]:
        """Distribute as `fill`, but only to members in the rack of a replica. Returns the partitions that are left."""
        rest, turn = [], 0
        for partition in unassigned:
            place = self._next_near(partition, self.below, turn)
            if place is not None:
                member = self.below[place]
                count = self._give(member, partition)
                if count >= self.least:
                    del self.below[place]
                    if count < self.most:
                        self.at_least.append(member)
                else:
                    place += 1
                turn = place % len(self.below) if self.below else 0
            elif self.with_one_more > 0 and (place := self._next_near(partition, self.at_least, 0)) is not None:
                self._give(self.at_least.pop(place), partition)
                self.with_one_more -= 1
            else:
                rest.append(partition)
        return rest

    def _next_near(self, partition: TopicPartition, members: list[str], first: int) -> int | None:
        places = ((first + step) % len(members) for step in range(len(members)))
        return next((place for place in places if self.nearness.is_near(members[place], partition)), None)


def assign_equal(partitions: Mapping[str, int], holdings: Holdings, nearness: Nearness) -> tuple[Assignment, Transfers]:
    """Return the assignment, and the partitions that move between members."""
    deal = _Deal(partitions, holdings, nearness)
    for member, held in holdings.by_member.items():
        deal.keep(member, held)
    in_a_row = (TopicPartition(topic, index) for topic in sorted(partitions) for index in range(partitions[topic]))
    deal.fill([partition for partition in in_a_row if partition not in deal.kept])
    return deal.assignment, deal.transfers
