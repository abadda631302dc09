"""A streams group, as a value: its epochs, its members, the topology, the target, and derived values.

Owns the type and its queries; `replay` builds changed values. Decides nothing, except for the checks of `view.Group`
that offsets and administration use for any group.

    group epoch        incremented when members, the topology or its topics change
    assignment epoch   the group epoch of the target; lower while a new target is due
    member's epoch     the assignment epoch that the member has reached
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import (
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from pybroker.coordinator.group.modern.timers import timer_keys
from pybroker.coordinator.group.streams.owners import TaskOwners
from pybroker.coordinator.group.streams.records import build_group_tombstones
from pybroker.coordinator.group.streams.tasks import NO_TASKS, Tasks
from pybroker.coordinator.group.streams.timers import delay_key

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from pybroker.coordinator.group.ids import GroupId
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.coordinator.group.streams.member import StreamsMember
    from pybroker.coordinator.group.streams.offsets import TaskOffsets
    from pybroker.coordinator.group.streams.topology import Topology

FIRST_EPOCH = 1
"""The epoch of a group without a first member."""
NO_EPOCH = -1
"""The epoch of a missing target, validated topology or description."""
PROTOCOL_TYPE = "streams"

_NO_GENERATION = -1
_FIRST_VERSION_WITH_MEMBER_EPOCH = 9  # OffsetCommit: older versions' clients know no STALE_MEMBER_EPOCH


class StreamsGroupState(Enum):
    """The state of a group, derived from the rest of the value. The names are Kafka's."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics of the topology are missing or incorrectly partitioned."""
    ASSIGNING = "Assigning"
    """A new target is due."""
    RECONCILING = "Reconciling"
    """Members reconcile with the target."""
    STABLE = "Stable"


class StreamsGroup(msgspec.Struct, frozen=True, dict=True):
    """A group of the streams protocol."""

    id: GroupId
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    """Hash of the topology's topics at the last change of the epoch (KIP-1101)."""
    validated_topology_epoch: int = NO_EPOCH
    """The epoch of the topology if all its topics were there at the last change of the epoch."""
    last_configs: Mapping[str, str] = {}
    """The configuration of assignments at the last change of the epoch."""
    description_epochs: tuple[int, int] = (NO_EPOCH, NO_EPOCH)
    """Epochs of the topologies whose descriptions Kafka's plugin has stored and rejected. Kept as Kafka wrote them."""
    assignment_epoch: int = FIRST_EPOCH
    assignment_ms: int = 0
    """When the target was computed; 0 if unknown."""
    members: Mapping[str, StreamsMember] = {}
    targets: Mapping[str, Tasks] = {}
    """The target of each member."""
    topology: Topology | None = None
    """The topology of the first member that joined."""

    # In memory only, as in Kafka:
    is_delayed: bool = False
    """Whether the initial rebalance delay is not over."""
    shutdown_by: str | None = None
    """The member that has requested that all members shut down."""
    endpoint_epoch: int = 0
    """Incremented when the tasks of a member with an endpoint change."""
    task_offsets: Mapping[str, TaskOffsets] = {}
    """The changelog offsets that members have reported."""

    type_name = "streams"
    protocol_type = PROTOCOL_TYPE

    # ------------------------------------------------------------------------------------- derived values

    @cached_property
    def state(self) -> StreamsGroupState:
        """The state."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @cached_property
    def static_members(self) -> Mapping[str, str]:
        """Member ids by instance id."""
        return {
            member.instance_id: member.member_id for member in self.members.values() if member.instance_id is not None
        }

    @cached_property
    def owners(self) -> TaskOwners:
        """The processes that have each task."""
        return TaskOwners(self.members.values())

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def member(self, member_id: str) -> StreamsMember:
        """Return a member; raises `UnknownMemberIdError`."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"Member {member_id} is not a member of group {self.id}.")
        return member

    def static_member(self, instance_id: str | None) -> StreamsMember | None:
        """Return the member with an instance id, None if there is none."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member_id: str) -> Tasks:
        """Return a member's target."""
        return self.targets.get(member_id, NO_TASKS)

    # ---------------------------------------------------------------------- checks of any group

    def check_commit(
        self, member_id: str, _instance_id: str | None, generation: int, version: int
    ) -> Callable[[str, bytes, int], None] | None:
        """Raise an error if a member may not commit; the returned function raises one for a (topic, id, partition).

        A commit in the member's epoch is allowed for all partitions. A commit in an older epoch is allowed for the
        active tasks that the member has had since then.
        """
        if generation < 0 and not self.members:
            return None
        member = self.member(member_id)
        if version < _FIRST_VERSION_WITH_MEMBER_EPOCH:
            raise UnsupportedVersionError(
                f"OffsetCommit version {_FIRST_VERSION_WITH_MEMBER_EPOCH} or above must be used by members using the "
                "streams group protocol"
            )
        return self._check_epoch(member, generation)

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> Callable[[str, bytes, int], None] | None:
        """As `check_commit`, for a commit in a transaction; a commit without a member is not checked (KIP-447)."""
        names_no_member = generation == _NO_GENERATION and not member_id and instance_id is None
        if names_no_member or (generation < 0 and not self.members):
            return None
        return self._check_epoch(self.member(member_id), generation)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise an error if a member may not fetch offsets."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise StaleMemberEpochError(
                f"The received member epoch {member_epoch} does not match the expected member epoch {member.epoch}."
            )

    def check_offset_delete(self) -> None:
        """Do nothing: any offset may be deleted if the topology does not read its topic (`is_subscribed_to`)."""

    def check_delete(self) -> None:
        """Raise an error if the group may not be deleted."""
        if self.members:
            raise NonEmptyGroupError

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether the topology of members reads the topic."""
        return bool(self.members) and self.topology is not None and topic in self.topology.reader_of

    def retention_begins(self, committed_ms: int) -> int | None:
        """Return when the retention of an offset committed at that time begins."""
        return committed_ms

    def build_tombstones(self) -> Iterable[GroupRecord]:
        """Return the tombstones of the group."""
        return build_group_tombstones(self.id, self.members)

    def timer_keys(self) -> Iterable[Hashable]:
        """Yield the keys of timers that the group may have set."""
        yield delay_key(self.id)
        for member_id in self.members:
            yield from timer_keys(self.id, member_id)

    def _check_epoch(self, member: StreamsMember, generation: int) -> Callable[[str, bytes, int], None] | None:
        """Raise an error if a member may not commit in an epoch; the result raises one for a (topic, id, partition)."""
        if generation == member.epoch:
            return None
        if generation > member.epoch:
            raise StaleMemberEpochError(
                f"Received member epoch {generation} is newer than current member epoch {member.epoch}."
            )
        topology = self.topology
        if topology is None:
            raise StaleMemberEpochError("Topology is not available for offset commit validation.")

        def check(topic: str, _topic_id: bytes, partition: int) -> None:
            part = topology.reader_of.get(topic)
            if part is None:
                raise StaleMemberEpochError(f"Topic {topic} is not in the topology.")
            since = member.assigned.active.get(part, {}).get(partition)
            if since is None:
                since = member.revoking.active.get(part, {}).get(partition)
            if since is None:
                raise StaleMemberEpochError(
                    f"Task {part}-{partition} is not assigned or pending revocation for member."
                )
            if generation < since:
                raise StaleMemberEpochError(
                    f"Received member epoch {generation} is older than assignment epoch {since} for task "
                    f"{part}-{partition}."
                )

        return check
