"""Sticky assignment where all members want the same topics: everyone keeps what fits, the rest is dealt.

    least = partitions div members, most = least, or one more where they do not divide
    partitions mod members of the members get `most`, the others `least`

Owns that case, which takes a time linear in partitions.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybroker.client.assignors.assignor import Assignment
from pybroker.client.assignors.holdings import Holdings
from pybroker.client.topics import TopicPartition

Transfers = dict[TopicPartition, str]
"""Partitions that go from one member to another, and to whom; in a cooperative group they go one rebalance later."""


class _Deal:
    def __init__(self, partitions: Mapping[str, int], holdings: Holdings) -> None:
        self.contested = holdings.contested
        self.assignment: Assignment = {member: [] for member in holdings.by_member}
        self.least, self.with_one_more = divmod(sum(partitions.values()), len(self.assignment))
        self.most = self.least + (self.with_one_more > 0)
        self.kept: set[TopicPartition] = set()
        self.revoked: set[TopicPartition] = set()
        self.below: list[str] = []
        """Members with fewer than `least`."""
        self.at_least: list[str] = []
        """Members with `least` that may get one more."""
        self.transfers: Transfers = {}

    def keep(self, member: str, held: list[TopicPartition]) -> None:
        """Leave a member what fits in its share, and take the rest away."""
        held = sorted((p for p in held if p not in self.contested), key=lambda p: (p.partition, p.topic))
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
        """Deal in turn to those below their share, then one each to those who may get one more."""
        below, at_least = sorted(self.below), sorted(self.at_least)
        turn = 0
        for partition in unassigned:
            turn = turn if turn < len(below) else 0
            member = below[turn] if below else at_least.pop(0)
            self.assignment[member].append(partition)
            if partition in self.revoked or partition in self.contested:
                self.transfers[partition] = member
            if len(self.assignment[member]) == self.least:
                del below[turn]
                at_least.append(member)
            else:
                turn += 1


def assign_equal(partitions: Mapping[str, int], holdings: Holdings) -> tuple[Assignment, Transfers]:
    """Who gets what, and what goes from one to another."""
    deal = _Deal(partitions, holdings)
    for member, held in holdings.by_member.items():
        deal.keep(member, held)
    in_a_row = (TopicPartition(topic, index) for topic in sorted(partitions) for index in range(partitions[topic]))
    deal.fill([partition for partition in in_a_row if partition not in deal.kept])
    return deal.assignment, deal.transfers
