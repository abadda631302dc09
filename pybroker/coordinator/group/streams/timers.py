"""The timer of the initial rebalance delay of streams groups: its key and its event.

Must not know the timers of members: these are in `reconciled.timers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Hashable


class StreamsDelayOver(msgspec.Struct, frozen=True):
    """The initial rebalance delay of an empty group is over."""

    group_id: str


def delay_key(group_id: str) -> Hashable:
    """Return the key of a group's initial delay."""
    return "streams delay", group_id
