"""The member of a request: a known one, a new one, or the replacement of a static one.

Owns the checks of member ids, instance ids and epochs, with Kafka's errors and messages, and the replacement of a
static member (KIP-345). Both protocols use it: a heartbeat of KIP-848, and a JoinGroup for a consumer group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupMaxSizeReachedError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from pybroker.coordinator.group.modern.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Member
from pybroker.coordinator.group.modern.records import (
    build_current,
    build_member_tombstones,
    build_subscription,
    build_target,
)
from pybroker.coordinator.group.modern.timers import cancel_timers

if TYPE_CHECKING:
    from pybroker.coordinator.group.modern.decision import Decision
    from pybroker.coordinator.group.modern.group import ConsumerGroup
    from pybroker.coordinator.group.modern.member import Held, Owned

MUST_REJOIN = "The member must abandon all its partitions and rejoin."


def check_group_size(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    """Raise an error if the group is full and has no such member."""
    if len(group.members) >= max_size and member_id not in group.members:
        raise GroupMaxSizeReachedError(f"The consumer group has reached its maximum capacity of {max_size} members.")


def find_or_replace(
    decision: Decision, member_id: str, instance_id: str | None, *, joins: bool, classic: bool
) -> Member:
    """Return a request's member; a joining member may be new, or replace the one with its instance id."""
    group = decision.group
    if instance_id is None:
        return group.members.get(member_id) or Member(member_id) if joins else group.member(member_id)
    holder = group.static_member(instance_id)
    if not joins:
        if holder is None:
            raise unknown_instance(instance_id)
        check_instance(holder, member_id, instance_id)
        return holder
    if holder is None:
        return group.members.get(member_id) or Member(member_id)
    if not classic and holder.classic is None and holder.epoch != STATIC_LEAVE_EPOCH:
        raise UnreleasedInstanceIdError(
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {holder.member_id} member."
        )
    member = msgspec.structs.replace(holder, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=0)
    target = group.targets.get(holder.member_id, {})
    decision.write(build_member_tombstones(group.id, holder.member_id))
    decision.write(
        [
            build_subscription(group.id, member),
            build_target(group.id, member_id, target),
            build_current(group.id, member),
        ]
    )
    if holder.member_id != member_id:
        decision.timers += cancel_timers(group.id, holder.member_id)
    return member


def check_epoch(member: Member, epoch: int, owned: Owned | None) -> None:
    """Raise an error if a member sends an epoch that it cannot be in."""
    if epoch == JOIN_EPOCH or epoch == member.epoch:
        return
    if epoch > member.epoch:
        raise FencedMemberEpochError(
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). {MUST_REJOIN}"
        )
    # The response with the new epoch was lost: possible only while the member has no partitions to revoke.
    if epoch != member.previous_epoch or owned is None or not _is_within(owned, member.assigned):
        raise FencedMemberEpochError(
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). {MUST_REJOIN}"
        )


def check_instance(holder: Member, member_id: str, instance_id: str) -> None:
    """Raise an error if another member has the instance id."""
    if holder.member_id != member_id:
        raise FencedInstanceIdError(
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        )


def unknown_instance(instance_id: str) -> UnknownMemberIdError:
    """Return the error for an unknown instance id."""
    return UnknownMemberIdError(f"Instance id {instance_id} is unknown.")


def _is_within(owned: Owned, held: Held) -> bool:
    return all(topic in held and partitions <= held[topic].keys() for topic, partitions in owned.items())
