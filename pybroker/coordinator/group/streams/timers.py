"""The timers of streams groups: their keys and events.

Owns only the event types, and the key of the initial delay. Members' keys are those of `modern.timers`: a group is of
one type at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Hashable


class StreamsMemberSilent(msgspec.Struct, frozen=True):
    """A member's session has expired."""

    group_id: str
    member_id: str


class TaskRevocationOverdue(msgspec.Struct, frozen=True):
    """A member has not revoked its tasks within its rebalance timeout."""

    group_id: str
    member_id: str
    epoch: int
    """The epoch in which it must revoke them."""


class StreamsDelayOver(msgspec.Struct, frozen=True):
    """The initial rebalance delay of an empty group is over."""

    group_id: str


def delay_key(group_id: str) -> Hashable:
    """Return the key of a group's initial delay."""
    return "streams delay", group_id
