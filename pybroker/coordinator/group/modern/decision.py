"""A decision in the making: the records so far, and the group as they make it.

Owns the bookkeeping that every decision about a consumer group shares. What is decided next sees what has been decided
before as if it were committed already; the machine's own group stays as it is until the records are.
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
    from pybroker.machine.machine import Answer, Parked, Timer

Reply = TypeVar("Reply")


class Decision:
    """Begins with a group as it is; a group that does not exist yet has no records and no members."""

    def __init__(self, group: ConsumerGroup) -> None:
        # Invariant: what `records` make of the group that this began with.
        self.group = group
        self.records: list[Record] = []
        self.timers: list[Timer] = []
        self.answers: list[Answer] = []

    def write(self, records: Iterable[GroupRecord]) -> None:
        """Add records, of which none takes the group itself away."""
        added = list(records)
        self.records.extend(added)
        self.group = replay_ahead(self.group, added)

    def write_targets(self, targets: Mapping[str, Owned]) -> None:
        """Give members new targets."""
        records = [build_target(self.group.id, member_id, target) for member_id, target in targets.items()]
        self.records.extend(records)
        self.group = replay_targets_ahead(self.group, targets, records)

    def outcome(self, reply: Reply | Parked) -> Outcome[Record, Reply]:
        """Return all of it."""
        return Outcome(tuple(self.records), reply, tuple(self.timers), tuple(self.answers))
