"""Timer events of a classic group: expired sessions, and phases of a rebalance that took too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.classic.draft import GroupDraft
from pybroker.coordinator.group.classic.group import ClassicGroup, join_timer
from pybroker.coordinator.group.classic.rebalance import complete_join, prepare_rebalance, take_out
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.events import InitialDelayOver
from pybroker.machine.machine import Outcome

if TYPE_CHECKING:
    from pybroker.coordinator.group.events import JoinPhaseOver, SessionOver, SyncPhaseOver
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.view import GroupView

NOTHING: Outcome[Record, None] = Outcome((), None)


def _draft(view: GroupView, group_id: str, now: int) -> GroupDraft | None:
    """Create a draft; None if the group was deleted, or uses another protocol."""
    group = view.group(group_id)
    return GroupDraft(group, view.settings, now) if isinstance(group, ClassicGroup) else None


def end_session(view: GroupView, event: SessionOver, now: int) -> Outcome[Record, None]:
    """Remove a member whose session has expired, unless its request is delayed; an unused member id is removed."""
    draft = _draft(view, event.group_id, now)
    if draft is None:
        return NOTHING
    member_id = event.member_id
    if draft.members.is_pending(member_id):
        draft.remove_member(member_id)
        if draft.state is ClassicState.PREPARING_REBALANCE and draft.members.all_have_joined:
            complete_join(draft)
        return draft.outcome(None)
    member = draft.members.get(member_id)
    if member is None or (not member.is_new and (member.awaiting_join or member.awaiting_sync)):
        return NOTHING
    take_out(draft, member_id, f"removing member {member_id} on heartbeat expiration.")
    return draft.outcome(None)


def end_initial_delay(view: GroupView, event: InitialDelayOver, now: int) -> Outcome[Record, None]:
    """Complete the rebalance of a new group, or delay it again if members have joined meanwhile (KIP-134)."""
    draft = _draft(view, event.group_id, now)
    if draft is None or draft.state is not ClassicState.PREPARING_REBALANCE:
        return NOTHING
    if not draft.new_member_added or event.remaining_ms == 0:
        complete_join(draft)
        return draft.outcome(None)
    draft.new_member_added = False
    delay = min(draft.settings.initial_rebalance_delay_ms, event.remaining_ms)
    remaining = max(event.remaining_ms - event.delay_ms, 0)
    draft.set_timer(join_timer(draft.id), delay, InitialDelayOver(draft.id, delay, remaining))
    return draft.outcome(None)


def end_join_phase(view: GroupView, event: JoinPhaseOver, now: int) -> Outcome[Record, None]:
    """Complete the join phase without the members that have not rejoined."""
    draft = _draft(view, event.group_id, now)
    if draft is None or draft.state is not ClassicState.PREPARING_REBALANCE:
        return NOTHING
    complete_join(draft)
    return draft.outcome(None)


def end_sync_phase(view: GroupView, event: SyncPhaseOver, now: int) -> Outcome[Record, None]:
    """Remove the members that have not sent a SyncGroup, and rebalance (KIP-559's sibling, KAFKA-9752)."""
    draft = _draft(view, event.group_id, now)
    if draft is None or draft.generation != event.generation or draft.members.all_have_synced:
        return NOTHING
    if draft.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
        return NOTHING
    missing = sorted(draft.members.pending_syncs)
    for member_id in missing:
        draft.remove_member(member_id)
    prepare_rebalance(draft, f"Removing {missing} on pending sync request expiration")
    return draft.outcome(None)
