"""Finds the group of a heartbeat.

Owns what happens if there is no consumer group with the id: a new group is created, an empty classic group is replaced,
or a classic group with members is upgraded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.errors import GroupIdNotFoundError
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.modern.decision import Decision
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.upgrade import replace_classic, upgrade

if TYPE_CHECKING:
    from pybroker.coordinator.group.view import GroupView


def find_or_create(view: GroupView, group_id: str, *, creates: bool, now: int) -> Decision:
    """Begin a decision about a consumer group; raises `GroupIdNotFoundError`."""
    group = view.group(group_id)
    if isinstance(group, ConsumerGroup):
        return Decision(group)
    if group is None:
        if not creates:
            raise GroupIdNotFoundError(f"Consumer group {group_id} not found.")
        return Decision(ConsumerGroup(GroupId(group_id)))
    if not creates or not isinstance(group, ClassicGroup):
        raise GroupIdNotFoundError(f"Group {group_id} is not a consumer group.")
    return replace_classic(group) if group.is_empty else upgrade(view, group, now)
