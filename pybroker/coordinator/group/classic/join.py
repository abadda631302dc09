"""JoinGroup: a member joins, or rejoins (Kafka's `classicGroupJoin`).

Owns which members are accepted, their ids, and whether a rebalance is needed. `rebalance` owns the rebalance itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.coordinator.group.classic.draft import GroupDraft, Protocols, build_member
from pybroker.coordinator.group.classic.group import ClassicGroup, session_timer
from pybroker.coordinator.group.classic.rebalance import (
    maybe_complete_join,
    maybe_rebalance_or_complete_join,
    prepare_rebalance,
)
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.events import SessionOver
from pybroker.coordinator.group.ids import GroupId, InstanceId, MemberId
from pybroker.machine.machine import Outcome
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.join_group import JoinGroupResponse
from pybroker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from pybroker.coordinator.group.events import JoinGroup
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.view import GroupView
    from pybroker.machine.machine import Delayed
    from pybroker.protocol.messages.join_group import JoinGroupRequest

_FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_WITH_KNOWN_ID = 4
"""From this version on a new dynamic member first receives an id, with which it joins again (KIP-394)."""
_FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT = 9
"""From this version on the response requests that a leader skips the assignment (KIP-814)."""


def join(view: GroupView, event: JoinGroup, now: int, group: ClassicGroup | None) -> Outcome[Record, Any]:
    """Decide about a JoinGroup; `group` is None if there is no group with that id."""
    request = event.request
    member_id = MemberId(request.member_id)
    is_new_group = group is None
    if group is None:
        if member_id:
            return Outcome((), refused(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        group = ClassicGroup(id=GroupId(request.group_id), since_ms=now)
    draft = GroupDraft(group, view.settings, now)
    protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
    if not _has_capacity(draft, member_id):
        draft.remove_member(member_id)
        return draft.outcome(refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
    if not draft.supports(request.protocol_type, protocols):
        reply: Any = refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
    elif member_id:
        reply = _join_existing(draft, event, member_id, protocols)
    else:
        reply = _join_new(draft, event, protocols)
    if is_new_group:
        draft.write_new()
    return draft.outcome(reply)


def refused(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return the response with an error for a member."""
    return JoinGroupResponse(error_code=code, member_id=member_id)


def _has_capacity(draft: GroupDraft, member_id: MemberId) -> bool:
    """Return whether `group.max.size` allows the member; during a rebalance the first members to rejoin stay."""
    member = draft.members.get(member_id)
    if draft.state is ClassicState.PREPARING_REBALANCE:
        return (member is not None and member.awaiting_join) or draft.members.awaiting_joins < draft.settings.max_size
    if draft.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
        return member is not None or len(draft.members) < draft.settings.max_size
    return True


def _join_new(draft: GroupDraft, event: JoinGroup, protocols: Protocols) -> Any:
    request = event.request
    if request.group_instance_id is not None:
        new_id = MemberId(f"{request.group_instance_id}-{event.fresh_id}")
        before = draft.members.static_member(request.group_instance_id)
        if before is not None:
            return _replace_static(draft, event, (before.id, new_id), protocols)
        return _add(draft, event, new_id, protocols)
    new_id = MemberId(f"{event.client.client_id}-{event.fresh_id}")
    if event.version < FIRST_VERSION_WITH_KNOWN_ID:
        return _add(draft, event, new_id, protocols)
    draft.members.expect_join(new_id)
    draft.set_timer(session_timer(draft.id, new_id), request.session_timeout_ms, SessionOver(draft.id, new_id))
    return refused(ErrorCode.MEMBER_ID_REQUIRED, new_id)


def _add(draft: GroupDraft, event: JoinGroup, member_id: MemberId, protocols: Protocols) -> Delayed:
    request = event.request
    instance_id = None if request.group_instance_id is None else InstanceId(request.group_instance_id)
    timeouts = (rebalance_timeout(event), request.session_timeout_ms)
    if draft.state is ClassicState.PREPARING_REBALANCE and draft.before is ClassicState.EMPTY:
        draft.new_member_added = True
    draft.add_member(build_member(member_id, instance_id, event.client, timeouts, protocols), request.protocol_type)
    reply = draft.delay_join(member_id)
    draft.prolong_session(member_id, draft.settings.new_member_join_timeout_ms)
    instance = f" with group instance id {instance_id}" if instance_id is not None else ""
    maybe_rebalance_or_complete_join(
        draft, f"Adding new member {member_id}{instance}; client reason: {_reason(request)}"
    )
    return reply


def rebalance_timeout(event: JoinGroup) -> int:
    """Return the rebalance timeout of the member; version 0 has no such field and uses the session timeout."""
    request = event.request
    has_own = event.version >= _FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    return request.rebalance_timeout_ms if has_own else request.session_timeout_ms


def _reason(request: JoinGroupRequest) -> str:
    return request.reason or "not provided"


def _update(draft: GroupDraft, event: JoinGroup, member_id: MemberId, protocols: Protocols) -> Delayed:
    """Store a member's new metadata and timeouts, and delay its JoinGroup."""
    draft.change_member(
        member_id,
        protocols=protocols,
        rebalance_timeout_ms=rebalance_timeout(event),
        session_timeout_ms=event.request.session_timeout_ms,
    )
    return draft.delay_join(member_id)


def _join_existing(draft: GroupDraft, event: JoinGroup, member_id: MemberId, protocols: Protocols) -> Any:
    request = event.request
    if draft.members.is_pending(member_id):
        if request.group_instance_id is not None:
            return refused(ErrorCode.UNKNOWN_SERVER_ERROR, member_id)  # A static member never has a pending id.
        return _add(draft, event, member_id, protocols)
    error = _member_fault(draft, member_id, request.group_instance_id)
    if error is not None:
        return refused(error, member_id)
    member = draft.members[member_id]
    reason = f"client reason: {_reason(request)}"
    changed = member.protocols != protocols
    if draft.state is ClassicState.PREPARING_REBALANCE:
        why = f"Member {member_id} is joining group during {draft.state.value}; {reason}"
    elif draft.state is ClassicState.STABLE and member_id == draft.leader:
        why = f"Leader {member_id} re-joining group during {draft.state.value}; {reason}"
    elif draft.state is not ClassicState.EMPTY and changed:
        why = f"Updating metadata for member {member_id} during {draft.state.value}; {reason}"
    elif draft.state is ClassicState.EMPTY:
        return refused(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
    else:
        # Nothing has changed: the response of this generation was lost, or is requested again.
        return draft.joined(member_id)
    reply = _update(draft, event, member_id, protocols)
    maybe_rebalance_or_complete_join(draft, why)
    return reply


def _member_fault(draft: GroupDraft, member_id: MemberId, instance_id: str | None) -> ErrorCode | None:
    if instance_id is not None:
        member = draft.members.static_member(instance_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.id != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return None if member_id in draft.members else ErrorCode.UNKNOWN_MEMBER_ID


def _replace_static(draft: GroupDraft, event: JoinGroup, ids: tuple[MemberId, MemberId], protocols: Protocols) -> Any:
    """Replace a restarted static member by itself under a new id (KIP-345)."""
    old_id, new_id = ids
    leader_before = draft.leader
    draft.complete_join(
        old_id, JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id, protocol_name=None)
    )
    draft.complete_sync(old_id, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    draft.rename_static_member(old_id, new_id)
    reply = _update(draft, event, new_id, protocols)
    draft.prolong_session(new_id)
    reason = f"client reason: {_reason(event.request)}"
    instance = f"{new_id} with instance id {event.request.group_instance_id}"
    if draft.state is ClassicState.STABLE:
        if draft.protocol == draft.select_protocol():
            return _keep_assignment(draft, event, new_id, leader_before)
        maybe_rebalance_or_complete_join(
            draft, f"Group's selectedProtocol will change because static member {instance} joined; {reason}"
        )
    elif draft.state is ClassicState.COMPLETING_REBALANCE:
        prepare_rebalance(draft, f"Updating metadata for static member {instance}; {reason}")
    else:
        maybe_complete_join(draft)
    return reply


def _keep_assignment(
    draft: GroupDraft, event: JoinGroup, new_id: MemberId, leader_before: MemberId | None
) -> JoinGroupResponse:
    """Respond without a rebalance: the group keeps its protocol, the member its assignment. Writes the new id."""
    draft.change_member(new_id, awaiting_join=False)
    draft.write({member.id: member.assignment for member in draft.members.in_order()})
    if event.version >= _FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT:
        return draft.joined(new_id, skip_assignment=new_id == draft.leader)
    # Before that version a leader that finds its own id as leader id would assign. So the response contains its former
    # id as leader id (KAFKA-7728).
    response = draft.joined(new_id)
    response.members = []
    response.leader = leader_before or ""
    return response
