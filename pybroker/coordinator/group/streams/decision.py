"""A decision in progress about a streams group.

Owns the records that add and replace members, and changes of state that no record contains.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pybroker.coordinator.group.group_change import GroupChange
from pybroker.coordinator.group.reconciled.decision import GroupDecision
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.member import StreamsMember
from pybroker.coordinator.group.streams.records import (
    build_current,
    build_member,
    build_member_tombstones,
    build_target,
)
from pybroker.coordinator.group.streams.replay import REPLAY


class StreamsDecision(GroupDecision[StreamsGroup, StreamsMember]):
    """Starts with the current group; a new group has no records and no members."""

    def __init__(self, group: StreamsGroup) -> None:
        super().__init__(group, REPLAY)

    def new_member(self, member_id: str) -> StreamsMember:
        """Return a member that is not in the group yet."""
        return StreamsMember(member_id)

    def write_replacement(self, replaced: StreamsMember, member: StreamsMember) -> None:
        """Delete a static member, and add the one that replaces it, with the same target."""
        group_id, target = self.group.id, self.group.target_of(replaced.member_id)
        self.write(
            [
                *build_member_tombstones(group_id, replaced.member_id),
                build_member(group_id, member),
                build_target(group_id, member.member_id, target),
                build_current(group_id, member),
            ]
        )

    def set(self, **changes: Any) -> None:
        """Change fields of the group that are in memory only."""
        if any(getattr(self.group, name) != value for name, value in changes.items()):
            self.group = msgspec.structs.replace(self.group, **changes)
            self.records.append(GroupChange(self.group.id, self.group))
