"""Members that leave a streams group, and members that are fenced because they were silent or too slow.

Owns the effects on the group: all records of the member are deleted, the epoch is incremented, and the next heartbeat
of another member computes the new target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.reconciled.member import STATIC_LEAVE_EPOCH
from pybroker.coordinator.group.reconciled.membership import check_instance, find_group
from pybroker.coordinator.group.reconciled.timers import cancel_timers
from pybroker.coordinator.group.streams.decision import StreamsDecision
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.records import (
    build_current,
    build_epoch,
    build_member_tombstones,
    build_target_epoch,
)
from pybroker.coordinator.group.streams.reply import StreamsReply
from pybroker.coordinator.group.streams.target import end_delay
from pybroker.coordinator.group.streams.tasks import NOTHING_HELD
from pybroker.machine.machine import Outcome
from pybroker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.streams.member import StreamsMember
    from pybroker.coordinator.group.streams.timers import StreamsDelayOver
    from pybroker.coordinator.group.view import GroupView
    from pybroker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


def leave(view: GroupView, request: StreamsGroupHeartbeatRequest) -> Outcome[Record, StreamsReply]:
    """Decide about a member that leaves, permanently, or temporarily as a static member."""
    decision = StreamsDecision(find_group(view, request.group_id, StreamsGroup))
    group = decision.group
    reply = StreamsReply(StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch))
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = check_instance(group.static_member(request.instance_id), request.member_id, request.instance_id)
    if request.shutdown_application:
        request_shutdown(decision, request.member_id)
    if request.instance_id is None or request.member_epoch != STATIC_LEAVE_EPOCH:
        fence(decision, member)
        return decision.outcome(reply)
    # Its tasks are reserved for the member that joins with its instance id, with new assignment epochs.
    active = {part: dict.fromkeys(held, 0) for part, held in member.assigned.active.items()}
    away = msgspec.structs.replace(
        member,
        epoch=STATIC_LEAVE_EPOCH,
        revoking=NOTHING_HELD,
        assigned=msgspec.structs.replace(member.assigned, active=active),
    )
    decision.write([build_current(group.id, away)])
    return decision.outcome(reply)


def request_shutdown(decision: StreamsDecision, member_id: str) -> None:
    """Note that all members should shut down. The first member that requests it is reported."""
    if decision.group.shutdown_by is None:
        decision.set(shutdown_by=member_id)


def fence(decision: StreamsDecision, member: StreamsMember) -> None:
    """Remove a member from a group."""
    group = decision.group
    epoch = group.epoch + 1
    records = [
        *build_member_tombstones(group.id, member.member_id),
        build_epoch(
            group.id,
            epoch,
            group.metadata_hash,
            validated_topology_epoch=group.validated_topology_epoch,
            configs=group.last_configs,
            description_epochs=group.description_epochs,
        ),
    ]
    if len(group.members) == 1:
        # The group is empty, so its empty target is up to date.
        records.append(build_target_epoch(group.id, epoch, 0))
    decision.write(records)
    if decision.group.is_empty:
        decision.set(shutdown_by=None)
    decision.timers += cancel_timers(group.id, member.member_id)


def assign_after_delay(view: GroupView, event: StreamsDelayOver, now: int) -> Outcome[Record, None]:
    """Compute the first target of a group, if it still exists."""
    group = view.group(event.group_id)
    if not isinstance(group, StreamsGroup):
        return Outcome((), None)
    decision = StreamsDecision(group)
    end_delay(decision, view, now)
    return decision.outcome(None)
