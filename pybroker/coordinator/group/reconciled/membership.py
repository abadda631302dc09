"""The group and the member of a request: a known member, a new one, or the replacement of a static one.

Owns the checks of group types, member ids, instance ids and epochs, with Kafka's errors and messages, and the
replacement of a static member (KIP-345). Heartbeats of both protocols use it, and a JoinGroup for a consumer group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pybroker.coordinator.group.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from pybroker.coordinator.group.reconciled.group import ReconciledGroup
from pybroker.coordinator.group.reconciled.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, ReconciledMember
from pybroker.coordinator.group.reconciled.timers import cancel_timers

if TYPE_CHECKING:
    from pybroker.coordinator.group.reconciled.decision import GroupDecision
    from pybroker.coordinator.group.view import GroupView

MUST_REJOIN = "The member must abandon all its partitions and rejoin."

Group = TypeVar("Group", bound=ReconciledGroup[Any, Any])
Member = TypeVar("Member", bound=ReconciledMember[Any])
Owned = TypeVar("Owned")


def find_group(view: GroupView, group_id: str, kind: type[Group]) -> Group:
    """Return a group of a type; raises `GroupIdNotFoundError`."""
    group = view.group(group_id)
    if group is None:
        raise GroupIdNotFoundError(f"Group {group_id} not found.")
    if not isinstance(group, kind):
        raise GroupIdNotFoundError(f"Group {group_id} is not a {kind.type_name} group.")
    return group


def check_group_size(group: ReconciledGroup[Any, Any], member_id: str, max_size: int) -> None:
    """Raise an error if the group is full and has no such member."""
    if len(group.members) >= max_size and member_id not in group.members:
        raise GroupMaxSizeReachedError(
            f"The {group.type_name} group has reached its maximum capacity of {max_size} members."
        )


def find_or_replace(
    decision: GroupDecision[Any, Member], member_id: str, instance_id: str | None, *, joins: bool, classic: bool = False
) -> Member:
    """Return a request's member; a joining member may be new, or replace the one with its instance id.

    A request of the classic protocol replaces a static member that has not left.
    """
    group: ReconciledGroup[Member, Any] = decision.group
    if instance_id is None and not joins:
        return group.member(member_id)
    holder = group.static_member(instance_id)
    if instance_id is not None and not joins:
        return check_instance(holder, member_id, instance_id)
    if holder is None:
        return group.members.get(member_id) or decision.new_member(member_id)
    if not classic and not holder.is_classic and holder.epoch != STATIC_LEAVE_EPOCH:
        raise UnreleasedInstanceIdError(
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {holder.member_id} member."
        )
    member = msgspec.structs.replace(holder, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=0)
    decision.write_replacement(holder, member)
    if holder.member_id != member_id:
        decision.timers += cancel_timers(group.id, holder.member_id)
    return member


def check_instance(holder: Member | None, member_id: str, instance_id: str) -> Member:
    """Return the static member; raises an error if there is none, or if another member has the instance id."""
    if holder is None:
        raise UnknownMemberIdError(f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise FencedInstanceIdError(
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        )
    return holder


def check_epoch(
    group: ReconciledGroup[Any, Any], member: ReconciledMember[Owned], epoch: int, owned: Owned | None
) -> None:
    """Raise an error if a member sends an epoch that it cannot be in."""
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    # With a smaller epoch, the response with the new epoch was lost: possible only while the member has nothing to
    # revoke.
    if epoch == member.previous_epoch and epoch < member.epoch and owned is not None and member.has_all(owned):
        return
    raise FencedMemberEpochError(
        f"The {group.type_name} group member has a {'greater' if epoch > member.epoch else 'smaller'} member epoch "
        f"({epoch}) than the one known by the group coordinator ({member.epoch}). {MUST_REJOIN}"
    )
