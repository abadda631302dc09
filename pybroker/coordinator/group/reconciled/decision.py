"""A decision in progress: its records so far, and the group after them.

Owns the bookkeeping of every decision about a group. Later steps of a decision see the earlier ones as if they were
committed. The machine's own group is unchanged until the records are applied.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pybroker.coordinator.group.group_change import GroupChange
from pybroker.coordinator.group.reconciled.group import ReconciledGroup
from pybroker.coordinator.group.reconciled.member import ReconciledMember
from pybroker.machine.machine import Outcome, Timer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.coordinator.group.classic.group import ClassicGroup
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.reconciled.replay import Replay
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.machine.machine import Delayed, DelayedReply

Reply = TypeVar("Reply")
Group = TypeVar("Group", bound=ReconciledGroup[Any, Any])
Member = TypeVar("Member", bound=ReconciledMember[Any])


class GroupDecision(ABC, Generic[Group, Member]):
    """Starts with the current group; a new group has no records and no members."""

    def __init__(self, group: Group, replay: Replay[Group]) -> None:
        # Invariant: the initial group after `records`.
        self.group = group
        self.records: list[Record] = []
        self.timers: list[Timer] = []
        self.responses: list[DelayedReply] = []
        self._replay = replay

    def replace_classic(self, replaced: ClassicGroup) -> None:
        """Delete a classic group without members, whose place the new group takes; offsets are kept."""
        self.records += replaced.build_tombstones()
        # Records after this one are applied ahead to this very value (`replay`).
        self.records.append(GroupChange(self.group.id, self.group))
        self.timers += (Timer(key, None) for key in replaced.timer_keys())

    def write(self, records: Iterable[GroupRecord]) -> None:
        """Add records, none of which deletes the group itself."""
        added = list(records)
        self.records.extend(added)
        self.group = self._replay.replay_ahead(self.group, added)

    @abstractmethod
    def new_member(self, member_id: str) -> Member:
        """Return a member that is not in the group yet."""

    @abstractmethod
    def write_replacement(self, replaced: Member, member: Member) -> None:
        """Delete a static member, and add the one that replaces it, with the same target."""

    def outcome(self, reply: Reply | Delayed) -> Outcome[Record, Reply]:
        """Return the outcome of the decision."""
        return Outcome(tuple(self.records), reply, tuple(self.timers), tuple(self.responses))
