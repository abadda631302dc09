"""LeaveGroup: members leave, or are removed by an administrator (Kafka's `classicGroupLeave`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.coordinator.group.classic.draft import GroupDraft
from pybroker.coordinator.group.classic.rebalance import maybe_complete_join, maybe_rebalance_or_complete_join
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.ids import MemberId
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.join_group import JoinGroupResponse
from pybroker.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from pybroker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from pybroker.coordinator.group.classic.group import ClassicGroup
    from pybroker.coordinator.group.events import LeaveGroup
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.view import GroupView
    from pybroker.machine.machine import Outcome
    from pybroker.protocol.messages.leave_group import MemberIdentity


def leave(view: GroupView, event: LeaveGroup, now: int, group: ClassicGroup) -> Outcome[Record, Any]:
    """Decide about a LeaveGroup; each member succeeds or fails by itself."""
    draft = GroupDraft(group, view.settings, now)
    responses = [_leave_one(draft, member) for member in event.request.members]
    removed = [
        f"{member.member_id or member.group_instance_id} (reason: {member.reason or 'not provided'})"
        for member, response in zip(event.request.members, responses, strict=True)
        if response.error_code == ErrorCode.NONE
    ]
    if removed and draft.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
        maybe_rebalance_or_complete_join(draft, f"explicit `LeaveGroup` request for ({', '.join(removed)}) members.")
    elif removed:
        maybe_complete_join(draft)
    return draft.outcome(LeaveGroupResponse(members=responses))


def _leave_one(draft: GroupDraft, requested: MemberIdentity) -> MemberResponse:
    response = MemberResponse(member_id=requested.member_id, group_instance_id=requested.group_instance_id)
    member_id = MemberId(requested.member_id)
    if draft.members.is_pending(member_id):
        draft.remove_member(member_id)
        return response
    if requested.group_instance_id is not None:
        static = draft.members.static_member(requested.group_instance_id)
        if static is not None and member_id and static.id != member_id:
            response.error_code = ErrorCode.FENCED_INSTANCE_ID
            return response
        member_id = MemberId("") if static is None else static.id
    if member_id not in draft.members:
        response.error_code = ErrorCode.UNKNOWN_MEMBER_ID
        return response
    draft.complete_join(member_id, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=""))
    draft.complete_sync(member_id, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    draft.remove_member(member_id)
    return response
