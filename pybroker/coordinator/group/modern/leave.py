"""Members that leave, and members that are fenced because they were silent or too slow.

Owns the effects on the group: all records of these members are deleted, the epoch is incremented, and the next
heartbeat of another member computes the new target. If only members of the classic protocol remain, the group becomes
a classic one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.modern.decision import Decision
from pybroker.coordinator.group.modern.downgrade import downgrade_without, may_downgrade_without
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.records import (
    build_current,
    build_epoch,
    build_member_tombstones,
    build_regex_tombstone,
)
from pybroker.coordinator.group.modern.subscription import current_hash
from pybroker.coordinator.group.reconciled.member import STATIC_LEAVE_EPOCH
from pybroker.coordinator.group.reconciled.membership import check_instance, find_group
from pybroker.coordinator.group.reconciled.timers import cancel_timers
from pybroker.machine.machine import Outcome
from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.modern.member import Member
    from pybroker.coordinator.group.view import GroupView
    from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def leave(
    view: GroupView, request: ConsumerGroupHeartbeatRequest, now: int
) -> Outcome[Record, ConsumerGroupHeartbeatResponse]:
    """Decide about a member that leaves, permanently, or temporarily as a static member."""
    group = find_group(view, request.group_id, ConsumerGroup)
    reply = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is None:
        return fence(view, group, [group.member(request.member_id)], now).outcome(reply)
    member = check_instance(group.static_member(request.instance_id), request.member_id, request.instance_id)
    if request.member_epoch != STATIC_LEAVE_EPOCH:
        return fence(view, group, [member], now).outcome(reply)
    # Its partitions are reserved for the member that joins with its instance id, with new assignment epochs.
    away = msgspec.structs.replace(
        member,
        epoch=STATIC_LEAVE_EPOCH,
        revoking={},
        assigned={topic: dict.fromkeys(held, 0) for topic, held in member.assigned.items()},
    )
    return Outcome((build_current(group.id, away),), reply)


def fence(view: GroupView, group: ConsumerGroup, members: Sequence[Member], now: int) -> Decision:
    """Remove members from a group; without members nothing changes."""
    decision = Decision(group)
    if not members:
        return decision
    if may_downgrade_without(view, group, members):
        downgrade_without(decision, view, members, now)
        return decision
    decision.write(one for member in members for one in build_member_tombstones(group.id, member.member_id))
    for member in members:
        decision.timers += cancel_timers(group.id, member.member_id)
    left = decision.group
    decision.write(
        build_regex_tombstone(left.id, regex) for regex in left.regexes if regex not in left.regex_subscribers
    )
    decision.write([build_epoch(group.id, group.epoch + 1, current_hash(decision.group, view.topics))])
    return decision
