"""The timers of members: their keys and events. A group is of one type at a time, so its type is not part of a key.

Owns the keys, the event types, and the deadlines. The code that sets a timer also restarts it; a timer is cancelled
with its member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.machine.machine import Timer

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from pybroker.coordinator.group.reconciled.member import ReconciledMember


class MemberSilent(msgspec.Struct, frozen=True):
    """A member's session has expired, or it did not send its SyncGroup in time."""

    group_id: str
    member_id: str


class RevocationOverdue(msgspec.Struct, frozen=True):
    """A member has not revoked its partitions or tasks within its rebalance timeout."""

    group_id: str
    member_id: str
    epoch: int
    """The epoch in which it must revoke them."""


def session_key(group_id: str, member_id: str) -> Hashable:
    """Return the key of a member's session timer."""
    return "session", group_id, member_id


def revocation_key(group_id: str, member_id: str) -> Hashable:
    """Return the key of a member's revocation timer."""
    return "revocation", group_id, member_id


def join_key(group_id: str, member_id: str) -> Hashable:
    """Return the key of the timer within which a member of the classic protocol must rejoin."""
    return "join", group_id, member_id


def sync_key(group_id: str, member_id: str) -> Hashable:
    """Return the key of the timer within which a member of the classic protocol must send a SyncGroup."""
    return "sync", group_id, member_id


def timer_keys(group_id: str, member_id: str) -> Iterator[Hashable]:
    """Yield the keys of all timers that a member may have."""
    for key in (session_key, revocation_key, join_key, sync_key):
        yield key(group_id, member_id)


def cancel_timers(group_id: str, member_id: str) -> tuple[Timer, ...]:
    """Return the cancellation of all timers of a member."""
    return tuple(Timer(key, None) for key in timer_keys(group_id, member_id))


def session_timer(group_id: str, member_id: str, deadline_ms: int) -> Timer:
    """Return the timer that restarts a member's session timeout."""
    return Timer(session_key(group_id, member_id), deadline_ms, MemberSilent(group_id, member_id))


def revocation_timer(group_id: str, member: ReconciledMember[Any], now: int) -> Timer:
    """Return the timer of a member's rebalance timeout, or its cancellation if the member has nothing to revoke."""
    key = revocation_key(group_id, member.member_id)
    if not member.must_revoke:
        return Timer(key, None)
    overdue = RevocationOverdue(group_id, member.member_id, member.epoch)
    return Timer(key, now + member.rebalance_timeout_ms, overdue)
