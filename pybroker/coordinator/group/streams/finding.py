"""Finds the group of a heartbeat.

Owns what happens if there is no streams group with the id: a new group is created, or replaces a classic group without
members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.errors import GroupIdNotFoundError
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.streams.decision import StreamsDecision
from pybroker.coordinator.group.streams.group import StreamsGroup

if TYPE_CHECKING:
    from pybroker.coordinator.group.view import GroupView


def find_or_create(view: GroupView, group_id: str, *, joins: bool) -> StreamsDecision:
    """Begin a decision about a streams group; raises `GroupIdNotFoundError`.

    A new group may replace a classic group without members; offsets are kept.
    """
    group = view.group(group_id)
    if isinstance(group, StreamsGroup):
        return StreamsDecision(group)
    if group is None:
        if not joins:
            raise GroupIdNotFoundError(f"Streams group {group_id} not found.")
        return StreamsDecision(StreamsGroup(GroupId(group_id)))
    if not joins or not isinstance(group, ClassicGroup) or not group.is_empty:
        raise GroupIdNotFoundError(f"Group {group_id} is not a streams group.")
    decision = StreamsDecision(StreamsGroup(group.id))
    decision.replace_classic(group)
    return decision
