"""A decision in progress: its records so far, and the group after them.

Owns the bookkeeping of every decision about a consumer group. Later steps of a decision see the earlier ones as if they
were committed. The machine's own group is unchanged until the records are applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pybroker.coordinator.group.modern.records import build_target
from pybroker.coordinator.group.modern.replay import replay_ahead, replay_targets_ahead
from pybroker.machine.machine import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.modern.group import ConsumerGroup
    from pybroker.coordinator.group.modern.member import Owned
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.machine.machine import Delayed, DelayedReply, Timer

Reply = TypeVar("Reply")


class Decision:
    """Starts with the current group; a new group has no records and no members."""

    def __init__(self, group: ConsumerGroup) -> None:
        # Invariant: the initial group after `records`.
        self.group = group
        self.records: list[Record] = []
        self.timers: list[Timer] = []
        self.responses: list[DelayedReply] = []

    def write(self, records: Iterable[GroupRecord]) -> None:
        """Add records, none of which deletes the group itself."""
        added = list(records)
        self.records.extend(added)
        self.group = replay_ahead(self.group, added)

    def write_targets(self, targets: Mapping[str, Owned]) -> None:
        """Set new targets of members."""
        records = [build_target(self.group.id, member_id, target) for member_id, target in targets.items()]
        self.records.extend(records)
        self.group = replay_targets_ahead(self.group, targets, records)

    def outcome(self, reply: Reply | Delayed) -> Outcome[Record, Reply]:
        """Return the outcome of the decision."""
        return Outcome(tuple(self.records), reply, tuple(self.timers), tuple(self.responses))
