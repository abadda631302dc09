"""Sticky assignment where members subscribe to different topics: keep, fill up, then move until it is balanced.

An assignment is balanced when no member could get a partition from a member with two more. The time grows with
partitions times moves, so this algorithm is used only where subscriptions differ. Where racks matter (KIP-881), no
member keeps a partition without a replica in its rack, and free partitions are assigned within racks first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from itertools import combinations

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import Assignment, GroupMember
from pybroker.client.assignors.holdings import NO_GENERATION, Holdings
from pybroker.client.assignors.movements import Movements
from pybroker.client.assignors.racks import Nearness


class _Balance:
    """The assignment while it is computed."""

    def __init__(
        self,
        partitions: Mapping[str, int],
        members: Mapping[str, GroupMember],
        holdings: Holdings,
        nearness: Nearness,
    ) -> None:
        self.nearness = nearness
        self.partitions = partitions
        self.topics = {m: [t for t in members[m].topics if t in partitions] for m in holdings.by_member}
        self.takers: dict[str, list[str]] = {topic: [] for topic in partitions}
        for member, topics in self.topics.items():
            for topic in topics:
                self.takers[topic].append(member)
        self.current: dict[str, dict[TopicPartition, None]] = {
            member: {p: None for p in held if p.topic in self.topics[member] and not nearness.is_far(member, p)}
            for member, held in holdings.by_member.items()
        }
        self.revocation = any(len(self.current[m]) != len(held) for m, held in holdings.by_member.items())
        self.holder = {p: member for member, held in self.current.items() for p in held}
        self.before = _held_before(holdings)
        by_rarity = sorted(partitions, key=lambda topic: (len(self.takers[topic]), topic))
        self.all = [TopicPartition(topic, index) for topic in by_rarity for index in range(partitions[topic])]
        self.ranking = sorted((len(held), member) for member, held in self.current.items())
        """(partition count, member) of all members that may still gain or lose partitions."""
        self.movements = Movements()

    def give(self, partition: TopicPartition, member: str) -> None:
        """Assign a partition to a member, and remove it from its current owner."""
        holder = self.holder.get(partition)
        if holder is not None:
            self._change(holder, partition, gain=False)
        self._change(member, partition, gain=True)
        self.holder[partition] = member

    def _change(self, member: str, partition: TopicPartition, *, gain: bool) -> None:
        held = self.current[member]
        del self.ranking[bisect_left(self.ranking, (len(held), member))]
        if gain:
            held[partition] = None
        else:
            del held[partition]
        insort(self.ranking, (len(held), member))

    def poorest(self, topic: str) -> str:
        """Return the member with the fewest partitions among those subscribed to a topic."""
        return next(member for _, member in self.ranking if topic in self.topics[member])

    def give_near(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Assign each to the subscribed member with the fewest partitions that is not far from it. Returns the rest."""
        rest = []
        for partition in partitions:
            wanting = (member for _, member in self.ranking if partition.topic in self.topics[member])
            member = next((member for member in wanting if not self.nearness.is_far(member, partition)), None)
            if member is None:
                rest.append(partition)
            else:
                self.give(partition, member)
        return rest

    def move(self, partition: TopicPartition, target: str) -> None:
        """Move a partition, or another of its topic whose earlier move this reverts."""
        moved = self.movements.better(partition, self.holder[partition], target)
        self.movements.note(moved, self.holder[moved], target)
        self.give(moved, target)

    def can_change(self, member: str) -> bool:
        """Whether a member may gain or lose partitions."""
        held = self.current[member]
        if len(held) < sum(self.partitions[topic] for topic in self.topics[member]):
            return True
        return any(len(self.takers[p.topic]) >= 2 for p in held)

    def is_balanced(self) -> bool:
        """Whether no member could get a partition from a member with at least two more."""
        if self.ranking[0][0] >= self.ranking[-1][0] - 1:
            return True
        for size, member in self.ranking:
            if size + 1 >= self.ranking[-1][0]:
                break
            for partition in self._within_reach(member):
                if size + 1 < len(self.current.get(self.holder[partition], ())):
                    return False
        return True

    def _within_reach(self, member: str) -> Iterator[TopicPartition]:
        held = self.current[member]
        for topic in self.topics[member]:
            for index in range(self.partitions[topic]):
                partition = TopicPartition(topic, index)
                if partition not in held:
                    yield partition

    def even_out(self, movable: list[TopicPartition]) -> bool:
        """Move partitions as long as that improves the balance. Returns whether any was moved."""
        moved_any = False
        while True:
            moved = False
            for partition in movable:
                if self.is_balanced():
                    break
                target = self._better_holder(partition)
                if target is not None:
                    self.move(partition, target)
                    moved = moved_any = True
            if not moved:
                return moved_any

    def _better_holder(self, partition: TopicPartition) -> str | None:
        size = len(self.current[self.holder[partition]])
        earlier = self.before.get(partition, (None, 0))[0]
        if (
            earlier in self.current
            and partition.topic in self.topics[earlier]
            and size > len(self.current[earlier]) + 1
        ):
            return earlier
        if any(size > len(self.current[other]) + 1 for other in self.takers[partition.topic]):
            return self.poorest(partition.topic)
        return None


def assign_unequal(
    partitions: Mapping[str, int], members: Mapping[str, GroupMember], holdings: Holdings, nearness: Nearness
) -> Assignment:
    """Return the assignment."""
    balance = _Balance(partitions, members, holdings, nearness)
    unassigned = [p for p in balance.all if p not in balance.holder]
    began_empty = balance.ranking[-1][0] == 0
    for partition in balance.give_near(unassigned) if nearness.matters else unassigned:
        if balance.takers[partition.topic]:
            balance.give(partition, balance.poorest(partition.topic))
    completed = {member: held for member, held in balance.current.items() if not balance.can_change(member)}
    for member, held in completed.items():
        balance.ranking.remove((len(held), member))
        del balance.current[member]
    kept = {member: dict(held) for member, held in balance.current.items()}
    if not balance.revocation:
        balance.even_out([p for p in unassigned if len(balance.takers[p.topic]) >= 2])
    moved = balance.even_out([p for p in balance.all if len(balance.takers[p.topic]) >= 2])
    better = began_empty or not moved or _unevenness(balance.current) < _unevenness(kept)
    final = (balance.current if better else kept) | completed
    return {member: list(final[member]) for member in members}


def _held_before(holdings: Holdings) -> dict[TopicPartition, tuple[str, int]]:
    """Return the previous owner of partitions and its generation: of the claims below the highest, the latest."""
    before: dict[TopicPartition, tuple[str, int]] = {}
    for member, claim in holdings.claims.items():
        generation = NO_GENERATION if claim.generation is None else claim.generation
        if generation >= holdings.youngest:
            continue
        for partition in claim.partitions:
            if partition not in before or generation > before[partition][1]:
                before[partition] = (member, generation)
    return before


def _unevenness(assignment: Mapping[str, Mapping[TopicPartition, None]]) -> int:
    """Return the sum over all pairs of members of the difference of their partition counts; 0 where all are equal."""
    sizes = [len(held) for held in assignment.values()]
    return sum(abs(one - other) for one, other in combinations(sizes, 2))
