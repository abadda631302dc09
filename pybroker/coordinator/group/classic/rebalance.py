"""The rebalance of a classic group, from its trigger to the last JoinGroup.

Owns the beginning and the end of its join phase and sync phase: the initial delay, the rebalance timeout, the choice of
leader and protocol. Every function takes a draft and changes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.classic.group import join_timer, sync_timer
from pybroker.coordinator.group.classic.transitions import CLASSIC_LIFE, ClassicState, ClassicStep
from pybroker.coordinator.group.events import InitialDelayOver, JoinPhaseOver, SyncPhaseOver
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.join_group import JoinGroupResponse
from pybroker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from pybroker.coordinator.group.classic.draft import GroupDraft
    from pybroker.coordinator.group.ids import MemberId


def maybe_rebalance_or_complete_join(draft: GroupDraft, why: str) -> None:
    """Start a rebalance, or complete the join phase of the current one if all members have joined."""
    if (draft.state, ClassicStep.REBALANCE) in CLASSIC_LIFE.table:
        prepare_rebalance(draft, why)
    else:
        maybe_complete_join(draft)


def prepare_rebalance(draft: GroupDraft, why: str) -> None:
    """Start a rebalance: members that wait for an assignment receive REBALANCE_IN_PROGRESS and rejoin."""
    if draft.state is ClassicState.COMPLETING_REBALANCE:
        for member_id in draft.members:
            draft.change_member(member_id, assignment=b"")
        propagate_assignments(draft, ErrorCode.REBALANCE_IN_PROGRESS)
    draft.end_sync_phase()
    is_initial = draft.state is ClassicState.EMPTY
    draft.step(ClassicStep.REBALANCE)
    draft.why = why
    if is_initial:
        delay = draft.settings.initial_rebalance_delay_ms
        remaining = max(draft.members.rebalance_timeout_ms - delay, 0)
        draft.set_timer(join_timer(draft.id), delay, InitialDelayOver(draft.id, delay, remaining))
    elif draft.members.all_have_joined:
        complete_join(draft)
    else:
        draft.set_timer(join_timer(draft.id), draft.members.rebalance_timeout_ms, JoinPhaseOver(draft.id))


def maybe_complete_join(draft: GroupDraft) -> None:
    """Complete the join phase if all members have joined; that of a new group lasts for the initial delay."""
    if draft.state is not ClassicState.PREPARING_REBALANCE or draft.before is ClassicState.EMPTY:
        return
    if draft.members.all_have_joined:
        complete_join(draft)


def complete_join(draft: GroupDraft) -> None:
    """Complete the join phase: remove dynamic members that have not joined, and start the next generation."""
    draft.end_join_phase()
    for member in draft.members.in_order():
        if not member.awaiting_join and member.instance_id is None:
            draft.remove_member(member.id)
    if draft.members and not _elect_leader(draft):
        # Only static members, none of which has joined.
        draft.set_timer(join_timer(draft.id), draft.members.rebalance_timeout_ms, JoinPhaseOver(draft.id))
        return
    draft.begin_generation()
    if draft.state is ClassicState.EMPTY:
        draft.write({})
        return
    draft.begin_syncs()
    draft.set_timer(sync_timer(draft.id), draft.members.rebalance_timeout_ms, SyncPhaseOver(draft.id, draft.generation))


def _elect_leader(draft: GroupDraft) -> bool:
    """Elect a member that has joined, the current leader if it has; false if none has."""
    leader = draft.members.get(draft.leader) if draft.leader is not None else None
    if leader is None or not leader.awaiting_join:
        leader = next((member for member in draft.members.in_order() if member.awaiting_join), None)
        if leader is None:
            return False
        draft.leader = leader.id
    return True


def propagate_assignments(draft: GroupDraft, code: ErrorCode = ErrorCode.NONE) -> None:
    """Return the assignment, or the error, to every member that waits for its assignment."""
    is_assigned = code is ErrorCode.NONE
    for member in draft.members.in_order():
        response = SyncGroupResponse(
            error_code=code,
            protocol_type=draft.protocol_type if is_assigned else None,
            protocol_name=draft.protocol if is_assigned else None,
            assignment=member.assignment,
        )
        if draft.complete_sync(member.id, response):
            draft.prolong_session(member.id)


def take_out(draft: GroupDraft, member_id: MemberId, why: str) -> None:
    """Remove a failed member, and rebalance the remaining ones."""
    draft.complete_join(member_id, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=""))
    draft.complete_sync(member_id, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    draft.remove_member(member_id)
    if draft.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
        maybe_rebalance_or_complete_join(draft, why)
    elif draft.state is ClassicState.PREPARING_REBALANCE and draft.members.all_have_joined:
        complete_join(draft)
