"""A group whose members reconcile with a target assignment, as a value.

Owns the fields, the queries, and the checks of `view.Group` that consumer and streams groups have in common.

    group epoch        incremented when members, or the topics that they read, change
    assignment epoch   the group epoch of the target; lower while a new target is due
    member's epoch     the assignment epoch that the member has reached
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec

from pybroker.coordinator.group.errors import (
    GroupError,
    IllegalGenerationError,
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from pybroker.coordinator.group.reconciled.member import ReconciledMember
from pybroker.coordinator.group.reconciled.timers import revocation_timer, session_timer, timer_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from enum import Enum

    from pybroker.coordinator.group.ids import GroupId
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.machine.machine import Timer

FIRST_EPOCH = 1
"""The epoch of a group without a first member."""
NO_EPOCH = -1
"""The epoch of a missing target, validated topology or description."""

_NO_GENERATION = -1
_FIRST_VERSION_WITH_MEMBER_EPOCH = 9  # OffsetCommit: older versions' clients know no STALE_MEMBER_EPOCH

Member = TypeVar("Member", bound=ReconciledMember[Any])
Target = TypeVar("Target")


class ReconciledGroup(msgspec.Struct, Generic[Member, Target], frozen=True, dict=True):
    """A group with a target assignment."""

    id: GroupId
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    """Hash of the group's topics at the last change of the epoch (KIP-1101)."""
    assignment_epoch: int = FIRST_EPOCH
    assignment_ms: int = 0
    """When the target was computed; 0 if unknown."""
    members: Mapping[str, Member] = {}
    targets: Mapping[str, Target] = {}
    """The target of each member."""

    type_name: ClassVar[str]
    protocol_type: ClassVar[str]
    unit: ClassVar[str]
    """The part of an assignment in error messages."""

    @property
    @abstractmethod
    def state(self) -> Enum:
        """The state, derived from the rest of the value."""

    @abstractmethod
    def assigned_since(self, member: Member, topic: str, topic_id: bytes, partition: int) -> tuple[str, int | None]:
        """Return the name of a partition or its task, and its assignment epoch; None if the member has it not."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads the topic."""

    @abstractmethod
    def build_tombstones(self) -> Iterable[GroupRecord]:
        """Return the tombstones of the group."""

    # ------------------------------------------------------------------------------------- derived values

    @cached_property
    def static_members(self) -> Mapping[str, str]:
        """Member ids by instance id."""
        return {
            member.instance_id: member.member_id
            for member in self.members.values()
            if member.instance_id is not None  # a member of the classic protocol may have an empty one
        }

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        name: str = self.state.value
        return name

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def is_reconciled(self) -> bool:
        """Whether all members have reached the target."""
        return all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())

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

    def may_assign(self, interval_ms: int, now: int) -> bool:
        """Return whether the minimum time between two targets is over."""
        # An assignment in the future is from before the clock was set back.
        return self.assignment_ms == 0 or interval_ms == 0 or not 0 <= now - self.assignment_ms < interval_ms

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
        if not member.is_classic and version < _FIRST_VERSION_WITH_MEMBER_EPOCH:
            raise UnsupportedVersionError(
                f"OffsetCommit version {_FIRST_VERSION_WITH_MEMBER_EPOCH} or above must be used by members using the "
                f"{self.type_name} group protocol"
            )
        return self.check_epoch(member, generation)

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> Callable[[str, bytes, int], None] | None:
        """As `check_commit`, for a commit in a transaction; a commit without a member is not checked (KIP-447)."""
        names_no_member = generation == _NO_GENERATION and not member_id and instance_id is None
        if names_no_member or (generation < 0 and not self.members):
            return None
        return self.check_epoch(self.member(member_id), generation)

    def check_epoch(self, member: Member, generation: int) -> Callable[[str, bytes, int], None] | None:
        """Raise an error if a member may not commit in an epoch; the result raises one for a (topic, id, partition)."""
        if generation == member.epoch:
            return None
        if generation > member.epoch:
            raise _stale(member, "Received", f"{generation} is newer than current member epoch {member.epoch}.")

        def check(topic: str, topic_id: bytes, partition: int) -> None:
            name, since = self.assigned_since(member, topic, topic_id, partition)
            if since is None:
                stale = IllegalGenerationError if member.is_classic else StaleMemberEpochError
                raise stale(f"{self.unit.capitalize()} {name} is not assigned or pending revocation for member.")
            if generation < since:
                fault = f"{generation} is older than assignment epoch {since} for {self.unit} {name}."
                raise _stale(member, "Received", fault)

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise an error if a member may not fetch offsets."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            fault = f"{member_epoch} does not match the expected member epoch {member.epoch}."
            raise _stale(member, "The received", fault)

    def check_offset_delete(self) -> None:
        """Do nothing: any offset may be deleted if no member reads its topic (`is_subscribed_to`)."""

    def check_delete(self) -> None:
        """Raise an error if the group may not be deleted."""
        if self.members:
            raise NonEmptyGroupError

    def retention_begins(self, committed_ms: int) -> int | None:
        """Return when the retention of an offset committed at that time begins."""
        return committed_ms

    def timer_keys(self) -> Iterable[Hashable]:
        """Yield the keys of timers that the group may have set."""
        for member_id in self.members:
            yield from timer_keys(self.id, member_id)

    def load_timers(self, session_timeout_ms: int, now: int) -> Iterator[Timer]:
        """Yield the timers after a load: of all sessions, and of members that revoke. Time before does not count."""
        for member_id, member in self.members.items():
            yield session_timer(self.id, member_id, now + session_timeout_ms)
            if member.must_revoke:
                yield revocation_timer(self.id, member, now)


def _stale(member: ReconciledMember[Any], prefix: str, fault: str) -> GroupError:
    """Return the error for a wrong epoch: ILLEGAL_GENERATION for a classic member, else STALE_MEMBER_EPOCH."""
    if member.is_classic:
        return IllegalGenerationError(f"{prefix} generation id {fault}")
    return StaleMemberEpochError(f"{prefix} member epoch {fault}")
