"""A member of a streams group, as a value.

Owns its type and the states of its reconciliation. Decides nothing: `reconciliation` does.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from pybroker.coordinator.group.reconciled.member import ReconciledMember
from pybroker.coordinator.group.streams.tasks import NOTHING_HELD, HeldTasks, Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping


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


class StreamsMember(ReconciledMember[Tasks], frozen=True):
    """A member: its identity, its process, and its tasks."""

    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
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

    @property
    def must_revoke(self) -> bool:
        """Whether it must acknowledge a revocation within its rebalance timeout."""
        return self.state is MemberState.UNREVOKED_TASKS

    def has_all(self, owned: Tasks) -> bool:
        """Return whether all of these tasks are assigned to it, in the same role."""
        return self.assigned.contains(owned)

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
