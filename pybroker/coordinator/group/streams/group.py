"""A streams group, as a value: its members, the topology, the target, and derived values.

Owns the type and its queries; `replay` builds changed values. The epochs are those of `reconciled.group`.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from pybroker.coordinator.group.errors import StaleMemberEpochError
from pybroker.coordinator.group.reconciled.group import NO_EPOCH, ReconciledGroup
from pybroker.coordinator.group.streams.member import StreamsMember
from pybroker.coordinator.group.streams.owners import TaskOwners
from pybroker.coordinator.group.streams.records import build_group_tombstones
from pybroker.coordinator.group.streams.tasks import NO_TASKS, Tasks
from pybroker.coordinator.group.streams.timers import delay_key

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.coordinator.group.streams.offsets import TaskOffsets
    from pybroker.coordinator.group.streams.topology import Topology

PROTOCOL_TYPE = "streams"


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


class StreamsGroup(ReconciledGroup[StreamsMember, Tasks], frozen=True, dict=True):
    """A group of the streams protocol."""

    validated_topology_epoch: int = NO_EPOCH
    """The epoch of the topology if all its topics were there at the last change of the epoch."""
    last_configs: Mapping[str, str] = {}
    """The configuration of assignments at the last change of the epoch."""
    description_epochs: tuple[int, int] = (NO_EPOCH, NO_EPOCH)
    """Epochs of the topologies whose descriptions Kafka's plugin has stored and rejected. Kept as Kafka wrote them."""
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

    type_name: ClassVar[str] = "streams"
    unit: ClassVar[str] = "task"
    protocol_type: ClassVar[str] = PROTOCOL_TYPE

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
        if self.is_reconciled:
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @cached_property
    def owners(self) -> TaskOwners:
        """The processes that have each task."""
        return TaskOwners(self.members.values())

    def target_of(self, member_id: str) -> Tasks:
        """Return a member's target."""
        return self.targets.get(member_id, NO_TASKS)

    # ---------------------------------------------------------------------- checks of any group

    def check_epoch(self, member: StreamsMember, generation: int) -> Callable[[str, bytes, int], None] | None:
        """Raise an error if a member may not commit in an epoch; an older epoch requires the topology."""
        if generation < member.epoch and self.topology is None:
            raise StaleMemberEpochError("Topology is not available for offset commit validation.")
        return super().check_epoch(member, generation)

    def assigned_since(
        self, member: StreamsMember, topic: str, _topic_id: bytes, partition: int
    ) -> tuple[str, int | None]:
        """Return the name and the assignment epoch of the active task that reads a partition; None without the task."""
        part = None if self.topology is None else self.topology.reader_of.get(topic)
        if part is None:
            raise StaleMemberEpochError(f"Topic {topic} is not in the topology.")
        since = member.assigned.active.get(part, {}).get(partition)
        if since is None:
            since = member.revoking.active.get(part, {}).get(partition)
        return f"{part}-{partition}", since

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether the topology of members reads the topic."""
        return bool(self.members) and self.topology is not None and topic in self.topology.reader_of

    def build_tombstones(self) -> Iterable[GroupRecord]:
        """Return the tombstones of the group."""
        return build_group_tombstones(self.id, self.members)

    def timer_keys(self) -> Iterable[Hashable]:
        """Yield the keys of timers that the group may have set."""
        yield delay_key(self.id)
        yield from super().timer_keys()
