"""A member of a streams group, as a value.

Owns its type and the states of its reconciliation. Decides nothing: `reconciliation` does.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.streams.tasks import NOTHING_HELD, HeldTasks

if TYPE_CHECKING:
    from collections.abc import Mapping

JOIN_EPOCH = 0
"""The epoch in the heartbeat of a member that joins."""
LEAVE_EPOCH = -1
"""The epoch in the heartbeat of a member that leaves."""
STATIC_LEAVE_EPOCH = -2
"""The epoch in the heartbeat of a static member that leaves temporarily; its tasks are reserved until its session
ends."""


class MemberState(IntEnum):
    """The state of a member's reconciliation with the target; the numbers are those of its record."""

    STABLE = 1
    """It has all tasks of the target in its epoch."""
    UNREVOKED_TASKS = 2
    """It must revoke tasks, and stays in its epoch until it has acknowledged the revocation."""
    UNRELEASED_TASKS = 3
    """It is in the target's epoch and waits for tasks that other members have not revoked yet."""
    UNKNOWN = 127
    """A state of a newer broker: the member must rejoin."""


class StreamsMember(msgspec.Struct, frozen=True):
    """A member: its identity, its process, and its tasks."""

    member_id: str
    epoch: int = JOIN_EPOCH
    """The epoch in its heartbeats; advances when it has reached the target, `STATIC_LEAVE_EPOCH` while it is away."""
    previous_epoch: int = 0
    """The previous epoch, which the member sends again if the response with the new one was lost."""
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    """Set for a static member (KIP-345)."""
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    """Maximum time for it to revoke tasks."""
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = -1
    """The epoch of the topology that it runs."""
    process_id: str = ""
    """The process that it is a thread of; the threads of a process share its state."""
    endpoint: tuple[str, int] | None = None
    """Host and port of the process for interactive queries."""
    client_tags: Mapping[str, str] = {}
    assigned: HeldTasks = NOTHING_HELD
    """Tasks that it has or may take, and keeps."""
    revoking: HeldTasks = NOTHING_HELD
    """Tasks that it has and must revoke; empty except in UNREVOKED_TASKS."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has all tasks of a target of `epoch`."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def has_new_placement(before: StreamsMember, after: StreamsMember) -> bool:
    """Return whether a property of a static member that assignments depend on has changed."""
    return (
        before.topology_epoch != after.topology_epoch
        or before.rack_id != after.rack_id
        or before.client_tags != after.client_tags
        or before.process_id != after.process_id
    )
