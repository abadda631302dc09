"""A decision in progress about a consumer group.

Owns the records that add and replace members, and those of many targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.member import Member
from pybroker.coordinator.group.modern.records import (
    build_current,
    build_member_tombstones,
    build_subscription,
    build_target,
)
from pybroker.coordinator.group.modern.replay import REPLAY, replay_targets_ahead
from pybroker.coordinator.group.reconciled.decision import GroupDecision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.coordinator.group.modern.member import Owned


class Decision(GroupDecision[ConsumerGroup, Member]):
    """Starts with the current group; a new group has no records and no members."""

    def __init__(self, group: ConsumerGroup) -> None:
        super().__init__(group, REPLAY)

    def new_member(self, member_id: str) -> Member:
        """Return a member that is not in the group yet."""
        return Member(member_id)

    def write_replacement(self, replaced: Member, member: Member) -> None:
        """Delete a static member, and add the one that replaces it, with the same target."""
        group_id, target = self.group.id, self.group.targets.get(replaced.member_id, {})
        self.write(build_member_tombstones(group_id, replaced.member_id))
        self.write(
            [
                build_subscription(group_id, member),
                build_target(group_id, member.member_id, target),
                build_current(group_id, member),
            ]
        )

    def write_targets(self, targets: Mapping[str, Owned]) -> None:
        """Set new targets of members."""
        records = [build_target(self.group.id, member_id, target) for member_id, target in targets.items()]
        self.records.extend(records)
        self.group = replay_targets_ahead(self.group, targets, records)
