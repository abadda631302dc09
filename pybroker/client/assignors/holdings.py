"""The current owner of each partition, derived from the members' claims.

Claims may conflict: a member that was away claims partitions that were reassigned since. The claim of the higher
generation wins; where two members claim a partition with the same generation, neither owns it. Both sticky
algorithms start with this rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors.assignor import GroupMember
from pybroker.client.java.hash_order import in_hash_order

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Claim:
    """The partitions that one member claims, and the generation of the claim; None where it is missing."""

    partitions: tuple[TopicPartition, ...]
    generation: int | None


@dataclass(slots=True)
class Holdings:
    """The owner of each partition before the assignment."""

    by_member: dict[str, list[TopicPartition]] = field(default_factory=dict)
    """Members in the order in which they are visited."""
    contested: set[TopicPartition] = field(default_factory=set)
    """Partitions that two members of one generation claim; they have no owner."""
    claims: dict[str, Claim] = field(default_factory=dict)
    youngest: int = NO_GENERATION
    """The highest generation of any claim."""
    all_want_the_same: bool = True

    @classmethod
    def of(
        cls,
        partitions: Mapping[str, int],
        members: Mapping[str, GroupMember],
        claim_of: Callable[[GroupMember], Claim],
    ) -> Holdings:
        """Resolve the claims of all members."""
        found = cls()
        holders: dict[TopicPartition, str] = {}
        wanted: set[str] = set()
        for member_id in in_hash_order(members):
            member = members[member_id]
            if not wanted:
                wanted = set(member.topics)
            elif len(member.topics) != len(wanted) or not wanted.issuperset(member.topics):
                found.all_want_the_same = False
            claim = found.claims[member_id] = claim_of(member)
            found.youngest = max(found.youngest, _number(claim.generation))
            found.by_member[member_id] = []
            for partition in claim.partitions:
                if partition.partition < partitions.get(partition.topic, 0):
                    found._weigh(partition, member_id, members, holders)
        return found

    def _weigh(
        self,
        partition: TopicPartition,
        member_id: str,
        members: Mapping[str, GroupMember],
        holders: dict[TopicPartition, str],
    ) -> None:
        other = holders.get(partition)
        ours = _number(self.claims[member_id].generation)
        # The other member's generation is that of its subscription, not of its user data, as in Kafka.
        theirs = NO_GENERATION - 1 if other is None else _number(members[other].generation)
        if other is not None and ours < theirs:
            return
        holders[partition] = member_id
        if other is not None and partition in self.by_member[other]:
            self.by_member[other].remove(partition)
        if ours == theirs:
            self.contested.add(partition)
        else:
            self.by_member[member_id].append(partition)


def _number(generation: int | None) -> int:
    return NO_GENERATION if generation is None else generation
