"""The group and the member of a heartbeat: known ones, new ones, or the replacement of a static member.

Owns the checks of group types, member ids, instance ids and epochs, with Kafka's errors and messages, and the
replacement of a static member (KIP-345).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from pybroker.coordinator.group.group_change import GroupChange
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.modern.timers import cancel_timers
from pybroker.coordinator.group.streams.decision import StreamsDecision
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, StreamsMember
from pybroker.coordinator.group.streams.records import (
    build_current,
    build_member,
    build_member_tombstones,
    build_target,
)
from pybroker.coordinator.group.streams.tasks import Tasks
from pybroker.machine.machine import Timer

if TYPE_CHECKING:
    from pybroker.coordinator.group.view import GroupView

_MUST_REJOIN = "The member must abandon all its partitions and rejoin."


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
    decision.records += group.build_tombstones()
    # Records after this one are applied ahead to this very value (`replay`).
    decision.records.append(GroupChange(group.id, decision.group))
    decision.timers += (Timer(key, None) for key in group.timer_keys())
    return decision


def find_streams_group(view: GroupView, group_id: str) -> StreamsGroup:
    """Return a streams group; raises `GroupIdNotFoundError`."""
    group = view.group(group_id)
    if group is None:
        raise GroupIdNotFoundError(f"Group {group_id} not found.")
    if not isinstance(group, StreamsGroup):
        raise GroupIdNotFoundError(f"Group {group_id} is not a streams group.")
    return group


def check_group_size(group: StreamsGroup, member_id: str, instance_id: str | None, max_size: int) -> None:
    """Raise an error if the group is full and the member would be a new one."""
    if group.static_member(instance_id) is None and len(group.members) >= max_size and member_id not in group.members:
        raise GroupMaxSizeReachedError(f"The streams group has reached its maximum capacity of {max_size} members.")


def find_or_replace(
    decision: StreamsDecision, member_id: str, instance_id: str | None, *, joins: bool
) -> StreamsMember:
    """Return a request's member; a joining member may be new, or replace the one with its instance id."""
    group = decision.group
    if instance_id is None:
        return group.members.get(member_id) or StreamsMember(member_id) if joins else group.member(member_id)
    holder = group.static_member(instance_id)
    if not joins:
        return check_instance(holder, member_id, instance_id)
    if holder is None:
        return group.members.get(member_id) or StreamsMember(member_id)
    if holder.epoch != STATIC_LEAVE_EPOCH:
        raise UnreleasedInstanceIdError(
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {holder.member_id} member."
        )
    member = msgspec.structs.replace(holder, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=0)
    target = group.target_of(holder.member_id)
    decision.write(
        [
            *build_member_tombstones(group.id, holder.member_id),
            build_member(group.id, member),
            build_target(group.id, member_id, target),
            build_current(group.id, member),
        ]
    )
    if holder.member_id != member_id:
        decision.timers += cancel_timers(group.id, holder.member_id)
    return member


def check_instance(holder: StreamsMember | None, member_id: str, instance_id: str) -> StreamsMember:
    """Return the static member; raises an error if there is none, or if another member has the instance id."""
    if holder is None:
        raise UnknownMemberIdError(f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise FencedInstanceIdError(
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        )
    return holder


def check_epoch(member: StreamsMember, epoch: int, owned: Tasks | None) -> None:
    """Raise an error if a member sends an epoch that it cannot be in."""
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    if epoch > member.epoch:
        raise FencedMemberEpochError(
            f"The streams group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). {_MUST_REJOIN}"
        )
    # The response with the new epoch was lost: possible only while the member has no tasks to revoke.
    if epoch != member.previous_epoch or owned is None or not member.assigned.contains(owned):
        raise FencedMemberEpochError(
            f"The streams group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). {_MUST_REJOIN}"
        )
