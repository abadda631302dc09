"""The timers of consumer groups: their keys and what they bring.

Owns the names alone. The code that sets a timer also sets it again; a timer dies with its member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.machine.machine import Timer

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator


class MemberSilent(msgspec.Struct, frozen=True):
    """A member was silent for its session timeout, or did not ask for its assignment in time."""

    group_id: str
    member_id: str


class RevocationOverdue(msgspec.Struct, frozen=True):
    """A member has not given its partitions back within its rebalance timeout."""

    group_id: str
    member_id: str
    epoch: int
    """The epoch that it was to leave."""


def session_key(group_id: str, member_id: str) -> Hashable:
    """Name the timer of a member's session."""
    return "session", group_id, member_id


def revocation_key(group_id: str, member_id: str) -> Hashable:
    """Name the timer of a member that gives partitions back."""
    return "revocation", group_id, member_id


def join_key(group_id: str, member_id: str) -> Hashable:
    """Name the timer of a member of the classic protocol that is to join again."""
    return "join", group_id, member_id


def sync_key(group_id: str, member_id: str) -> Hashable:
    """Name the timer of a member of the classic protocol that is to ask for its assignment."""
    return "sync", group_id, member_id


def timer_keys(group_id: str, member_id: str) -> Iterator[Hashable]:
    """Yield the keys of all timers that a member may have."""
    for key in (session_key, revocation_key, join_key, sync_key):
        yield key(group_id, member_id)


def cancel_timers(group_id: str, member_id: str) -> tuple[Timer, ...]:
    """End all timers of a member."""
    return tuple(Timer(key, None) for key in timer_keys(group_id, member_id))
