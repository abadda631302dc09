"""A consumer group, as a value: its epochs, its members, the target, and derived values.

Owns the type and its queries; `replay` builds changed values. Decides nothing, except for the checks of `view.Group`
that offsets and administration use for any group.

    group epoch        incremented when members, their subscriptions or their topics change
    assignment epoch   the group epoch of the target; lower while a new target is due
    member's epoch     the assignment epoch that the member has reached
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import (
    GroupError,
    IllegalGenerationError,
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from pybroker.coordinator.group.modern.member import Member
from pybroker.coordinator.group.modern.reconciliation import NOBODY
from pybroker.coordinator.group.modern.records import build_group_tombstones
from pybroker.coordinator.group.modern.regex import ResolvedRegex
from pybroker.coordinator.group.modern.timers import timer_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from pybroker.coordinator.group.ids import GroupId
    from pybroker.coordinator.group.modern.member import Owned
    from pybroker.coordinator.group.records import GroupRecord

FIRST_EPOCH = 1
"""The epoch of a group without a first member."""
NO_TARGET_EPOCH = -1
"""The assignment epoch of a group that is being deleted."""
PROTOCOL_TYPE = "consumer"

_NO_GENERATION = -1
_FIRST_VERSION_WITH_MEMBER_EPOCH = 9  # OffsetCommit: older versions' clients know no STALE_MEMBER_EPOCH


class ConsumerGroupState(Enum):
    """The state of a group, derived from the rest of the value. The names are Kafka's."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """A new target is due."""
    RECONCILING = "Reconciling"
    """Members reconcile with the target."""
    STABLE = "Stable"


class ConsumerGroup(msgspec.Struct, frozen=True, dict=True):
    """A group of the consumer protocol."""

    id: GroupId
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    """Hash of the subscribed topics at the last change of the epoch (KIP-1101)."""
    assignment_epoch: int = FIRST_EPOCH
    assignment_ms: int = 0
    """When the target was computed; 0 if unknown."""
    members: Mapping[str, Member] = {}
    targets: Mapping[str, Owned] = {}
    """The target of each member."""
    regexes: Mapping[str, ResolvedRegex] = {}
    """The resolved patterns of members."""
    partition_epochs: Mapping[bytes, Mapping[int, int]] = {}
    """The epoch of a partition's owner, by topic id and number. Derived from `members`, and stored, so that the cost of
    an update depends on the change only."""
    has_partition_metadata: bool = False
    """Whether its log contains a record of Kafka 4.0 that must be deleted."""

    type_name = "consumer"
    protocol_type = PROTOCOL_TYPE

    # ------------------------------------------------------------------------------------- derived values

    @cached_property
    def state(self) -> ConsumerGroupState:
        """The state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @cached_property
    def static_members(self) -> Mapping[str, str]:
        """Member ids by instance id."""
        return {
            member.instance_id: member.member_id
            for member in self.members.values()
            if member.instance_id is not None  # a member of the classic protocol may have an empty one
        }

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

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def member(self, member_id: str) -> Member:
        """Return a member; raises `UnknownMemberIdError`."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"Member {member_id} is not a member of group {self.id}.")
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        """Return the member with an instance id, None if there is none."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member_id: str, instance_id: str | None) -> Owned:
        """Return a member's target; for a static member, the target of the member with its instance id."""
        holder = member_id if instance_id is None else self.static_members.get(instance_id, "")
        return self.targets.get(holder, {})

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """Return the epoch of a partition's owner, `NOBODY` without an owner."""
        return self.partition_epochs.get(topic_id, {}).get(partition, NOBODY)

    # ---------------------------------------------------------------------- checks of any group

    def check_commit(
        self, member_id: str, _instance_id: str | None, generation: int, version: int
    ) -> Callable[[str, bytes, int], None] | None:
        """Raise an error if a member may not commit; the returned function raises one for a (topic, id, partition).

        A commit in the member's epoch is allowed for all partitions. A commit in an older epoch is allowed for those
        that the member has had since then (KIP-1251): the response with the new epoch may be in flight.
        """
        if generation < 0 and not self.members:
            return None
        member = self.member(member_id)
        if member.classic is None and version < _FIRST_VERSION_WITH_MEMBER_EPOCH:
            raise UnsupportedVersionError(
                f"OffsetCommit version {_FIRST_VERSION_WITH_MEMBER_EPOCH} or above must be used by members using the "
                "consumer group protocol"
            )
        return _check_epoch(member, generation)

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> Callable[[str, bytes, int], None] | None:
        """As `check_commit`, for a commit in a transaction; a commit without a member is not checked (KIP-447)."""
        names_nobody = generation == _NO_GENERATION and not member_id and instance_id is None
        if names_nobody or (generation < 0 and not self.members):
            return None
        return _check_epoch(self.member(member_id), generation)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise an error if a member may not fetch offsets."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            fault = f"{member_epoch} does not match the expected member epoch {member.epoch}."
            raise _stale(member, "The received", fault)

    def check_offset_delete(self) -> None:
        """Do nothing: any offset may be deleted if no member subscribes to its topic (`is_subscribed_to`)."""

    def check_delete(self) -> None:
        """Raise an error if the group may not be deleted."""
        if self.members:
            raise NonEmptyGroupError

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic."""
        return topic in self.subscribed_topics

    def retention_begins(self, committed_ms: int) -> int | None:
        """Return when the retention of an offset committed at that time begins."""
        return committed_ms

    def build_tombstones(self) -> Iterable[GroupRecord]:
        """Return the tombstones of the group."""
        return build_group_tombstones(self.id, self.members, self.regexes)

    def timer_keys(self) -> Iterable[Hashable]:
        """Yield the keys of timers that the group may have set."""
        for member_id in self.members:
            yield from timer_keys(self.id, member_id)


def _check_epoch(member: Member, generation: int) -> Callable[[str, bytes, int], None] | None:
    """Raise an error if a member may not commit in an epoch; the result raises one for a (topic, id, partition)."""
    if generation == member.epoch:
        return None
    if generation > member.epoch:
        raise _stale(member, "Received", f"{generation} is newer than current member epoch {member.epoch}.")

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        held = member.assigned.get(topic_id, {}).get(partition)
        since = member.revoking.get(topic_id, {}).get(partition) if held is None else held
        if since is None:
            stale = IllegalGenerationError if member.classic else StaleMemberEpochError
            raise stale(f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
        if generation < since:
            fault = f"{generation} is older than assignment epoch {since} for partition {topic}-{partition}."
            raise _stale(member, "Received", fault)

    return check


def _stale(member: Member, whose: str, fault: str) -> GroupError:
    """Return the error for a wrong epoch: ILLEGAL_GENERATION for a classic member, else STALE_MEMBER_EPOCH."""
    if member.classic is not None:
        return IllegalGenerationError(f"{whose} generation id {fault}")
    return StaleMemberEpochError(f"{whose} member epoch {fault}")
