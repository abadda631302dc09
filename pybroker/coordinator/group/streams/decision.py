"""A decision in progress about a streams group: its records so far, and the group after them.

Owns the bookkeeping of every decision about a streams group. Later steps of a decision see the earlier ones as if they
were committed. The machine's own group is unchanged until the records are applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pybroker.coordinator.group.group_change import GroupChange
from pybroker.coordinator.group.streams.replay import replay_ahead
from pybroker.machine.machine import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.coordinator.group.streams.group import StreamsGroup
    from pybroker.machine.machine import Timer

Reply = TypeVar("Reply")


class StreamsDecision:
    """Starts with the current group; a new group has no records and no members."""

    def __init__(self, group: StreamsGroup) -> None:
        # Invariant: the initial group after `records`.
        self.group = group
        self.records: list[Record] = []
        self.timers: list[Timer] = []

    def write(self, records: Iterable[GroupRecord]) -> None:
        """Add records, none of which deletes the group itself."""
        added = list(records)
        self.records.extend(added)
        self.group = replay_ahead(self.group, added)

    def set(self, **changes: Any) -> None:
        """Change fields of the group that are in memory only."""
        if any(getattr(self.group, name) != value for name, value in changes.items()):
            self.group = msgspec.structs.replace(self.group, **changes)
            self.records.append(GroupChange(self.group.id, self.group))

    def outcome(self, reply: Reply) -> Outcome[Record, Reply]:
        """Return the outcome of the decision."""
        return Outcome(tuple(self.records), reply, tuple(self.timers))
