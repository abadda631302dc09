"""A consumer group, as a value: its members, their subscriptions, the target, and derived values.

Owns the type and its queries; `replay` builds changed values. The epochs are those of `reconciled.group`.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from pybroker.coordinator.group.modern.member import Member, Owned
from pybroker.coordinator.group.modern.reconciliation import NOBODY
from pybroker.coordinator.group.modern.records import build_group_tombstones
from pybroker.coordinator.group.modern.regex import ResolvedRegex
from pybroker.coordinator.group.reconciled.group import ReconciledGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.coordinator.group.records import GroupRecord

PROTOCOL_TYPE = "consumer"


class ConsumerGroupState(Enum):
    """The state of a group, derived from the rest of the value. The names are Kafka's."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """A new target is due."""
    RECONCILING = "Reconciling"
    """Members reconcile with the target."""
    STABLE = "Stable"


class ConsumerGroup(ReconciledGroup[Member, Owned], frozen=True, dict=True):
    """A group of the consumer protocol."""

    regexes: Mapping[str, ResolvedRegex] = {}
    """The resolved patterns of members."""
    partition_epochs: Mapping[bytes, Mapping[int, int]] = {}
    """The epoch of a partition's owner, by topic id and number. Derived from `members`, and stored, so that the cost of
    an update depends on the change only."""
    has_partition_metadata: bool = False
    """Whether its log contains a record of Kafka 4.0 that must be deleted."""

    type_name: ClassVar[str] = "consumer"
    unit: ClassVar[str] = "partition"
    protocol_type: ClassVar[str] = PROTOCOL_TYPE

    # ------------------------------------------------------------------------------------- derived values

    @cached_property
    def state(self) -> ConsumerGroupState:
        """The state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if self.is_reconciled:
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @cached_property
    def regex_subscribers(self) -> Mapping[str, int]:
        """Number of members that subscribe to each pattern."""
        return Counter(member.regex for member in self.members.values() if member.regex)

    @cached_property
    def classic_members(self) -> int:
        """Number of members that use the classic protocol."""
        return sum(member.classic is not None for member in self.members.values())

    @cached_property
    def subscriptions(self) -> Mapping[frozenset[str], int]:
        """Number of members that name each set of topics."""
        return Counter(member.topics for member in self.members.values())

    @cached_property
    def subscribed_topics(self) -> frozenset[str]:
        """The names of topics that members subscribe to, by name or by pattern."""
        names = frozenset[str]().union(*self.subscriptions)
        return names.union(*(resolved.topics for resolved in self.regexes.values()))

    def target_of(self, member_id: str, instance_id: str | None) -> Owned:
        """Return a member's target; for a static member, the target of the member with its instance id."""
        holder = member_id if instance_id is None else self.static_members.get(instance_id, "")
        return self.targets.get(holder, {})

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """Return the epoch of a partition's owner, `NOBODY` without an owner."""
        return self.partition_epochs.get(topic_id, {}).get(partition, NOBODY)

    # ---------------------------------------------------------------------- checks of any group

    def assigned_since(self, member: Member, topic: str, topic_id: bytes, partition: int) -> tuple[str, int | None]:
        """Return the name and the assignment epoch of a member's partition; None if the member has it not."""
        since = member.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = member.revoking.get(topic_id, {}).get(partition)
        return f"{topic}-{partition}", since

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic."""
        return topic in self.subscribed_topics

    def build_tombstones(self) -> Iterable[GroupRecord]:
        """Return the tombstones of the group."""
        return build_group_tombstones(self.id, self.members, self.regexes)
