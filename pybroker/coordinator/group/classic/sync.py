"""SyncGroup: the leader brings everyone's assignment, everyone asks for its own (Kafka's `classicGroupSync`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.coordinator.group.classic.draft import GroupDraft
from pybroker.coordinator.group.classic.group import sync_timer
from pybroker.coordinator.group.classic.rebalance import propagate_assignments
from pybroker.coordinator.group.classic.transitions import ClassicState, ClassicStep
from pybroker.coordinator.group.errors import (
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pybroker.coordinator.group.ids import MemberId
from pybroker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from pybroker.coordinator.group.classic.group import ClassicGroup
    from pybroker.coordinator.group.events import SyncGroup
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.view import GroupView
    from pybroker.machine.machine import Outcome
    from pybroker.protocol.messages.sync_group import SyncGroupRequest


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
    reply = draft.park_sync(member_id)
    if member_id == draft.leader:
        _assign(draft, request)
    return draft.outcome(reply)


def _check(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.is_empty:
        raise UnknownMemberIdError
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise IllegalGenerationError
    for asked, chosen in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol)):
        if asked is not None and chosen is not None and asked != chosen:
            raise InconsistentGroupProtocolError
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise RebalanceInProgressError


def _assign(draft: GroupDraft, request: SyncGroupRequest) -> None:
    """Write the leader's assignment; whom it left out gets nothing."""
    assigned = {assignment.member_id: assignment.assignment for assignment in request.assignments}
    assignments = {member_id: assigned.get(member_id, b"") for member_id in draft.members}
    draft.write(assignments)
    for member_id, assignment in assignments.items():
        draft.change_member(member_id, assignment=assignment)
    propagate_assignments(draft)
    draft.step(ClassicStep.ASSIGNED)
