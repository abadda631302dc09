"""Heartbeat: keeps a member's session alive; the response requests a rejoin (Kafka's `classicGroupHeartbeat`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.coordinator.group.classic.group import ClassicGroup, session_timer
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.errors import IllegalGenerationError, UnknownMemberIdError
from pybroker.coordinator.group.events import SessionOver
from pybroker.coordinator.group.ids import MemberId
from pybroker.machine.machine import Outcome, Timer
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.heartbeat import HeartbeatResponse

if TYPE_CHECKING:
    from pybroker.coordinator.group.events import Heartbeat
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.view import GroupView


def heartbeat(_view: GroupView, event: Heartbeat, now: int, group: ClassicGroup) -> Outcome[Record, Any]:
    """Decide about a Heartbeat; raises a `GroupError`."""
    request = event.request
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise IllegalGenerationError
    if group.is_empty:
        raise UnknownMemberIdError
    rebalances = group.state is ClassicState.PREPARING_REBALANCE
    code = ErrorCode.REBALANCE_IN_PROGRESS if rebalances else ErrorCode.NONE
    return Outcome((), HeartbeatResponse(error_code=code), (session(group, request.member_id, now),))


def session(group: ClassicGroup, member_id: str, now: int) -> Timer:
    """Return the timer that restarts a member's session timeout."""
    deadline = now + group.members[MemberId(member_id)].session_timeout_ms
    return Timer(session_timer(group.id, member_id), deadline, SessionOver(group.id, MemberId(member_id)))
