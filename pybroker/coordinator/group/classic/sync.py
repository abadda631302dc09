"""SyncGroup: the leader sends all assignments, and each member receives its own (Kafka's `classicGroupSync`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.coordinator.group.classic.draft import GroupDraft
from pybroker.coordinator.group.classic.group import sync_timer
from pybroker.coordinator.group.classic.rebalance import prepare_rebalance, propagate_assignments
from pybroker.coordinator.group.classic.transitions import ClassicState, ClassicStep
from pybroker.coordinator.group.errors import (
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pybroker.coordinator.group.ids import MemberId
from pybroker.machine.machine import Outcome
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.coordinator.group.classic.group import ClassicGroup
    from pybroker.coordinator.group.events import SyncGroup
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.view import GroupView
    from pybroker.protocol.messages.sync_group import SyncGroupRequest


class _Assigned(Outcome[Any, Any], frozen=True, kw_only=True):
    """The outcome of the leader's SyncGroup. Its record may exceed the maximum size of the log."""

    otherwise: Callable[[], Outcome[Record, Any]]
    """Returns the outcome if the log rejects the record; called on the state in which the event was decided
    (`pybroker.machine.runner`)."""


def sync(view: GroupView, event: SyncGroup, now: int, group: ClassicGroup) -> Outcome[Record, Any]:
    """Decide about a SyncGroup; raises a `GroupError`."""
    request = event.request
    _check(group, request)
    draft = GroupDraft(group, view.settings, now)
    member_id = MemberId(request.member_id)
    draft.members.mark_synced(member_id)
    if draft.members.all_have_synced:
        draft.cancel(sync_timer(draft.id))
    if draft.state is ClassicState.STABLE:
        response = SyncGroupResponse(
            protocol_type=draft.protocol_type,
            protocol_name=draft.protocol,
            assignment=draft.members[member_id].assignment,
        )
        return draft.outcome(response)
    reply = draft.delay_sync(member_id)
    if member_id != draft.leader:
        return draft.outcome(reply)
    _assign(draft, request)
    outcome = draft.outcome(reply)
    return _Assigned(
        outcome.records,
        outcome.reply,
        outcome.timers,
        outcome.responses,
        otherwise=lambda: _fail_assignment(view, member_id, now, group),
    )


def _check(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.is_empty:
        raise UnknownMemberIdError
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise IllegalGenerationError
    for requested, chosen in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol)):
        if requested is not None and chosen is not None and requested != chosen:
            raise InconsistentGroupProtocolError
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise RebalanceInProgressError


def _assign(draft: GroupDraft, request: SyncGroupRequest) -> None:
    """Store the leader's assignments; members without an assignment get an empty one."""
    assigned = {assignment.member_id: assignment.assignment for assignment in request.assignments}
    assignments = {member_id: assigned.get(member_id, b"") for member_id in draft.members}
    draft.write(assignments)
    for member_id, assignment in assignments.items():
        draft.change_member(member_id, assignment=assignment)
    propagate_assignments(draft)
    draft.step(ClassicStep.ASSIGNED)


def _fail_assignment(view: GroupView, leader: MemberId, now: int, group: ClassicGroup) -> Outcome[Record, Any]:
    """Return the error to all members that wait for an unwritable assignment, and rebalance, so that they rejoin."""
    draft = GroupDraft(group, view.settings, now)
    reply = draft.delay_sync(leader)
    for member_id in draft.members:
        draft.change_member(member_id, assignment=b"")
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    propagate_assignments(draft, error)
    prepare_rebalance(draft, f"Error {error.name} when storing group assignment during SyncGroup (member: {leader}).")
    return draft.outcome(reply)
