"""The timers of streams groups after their coordinator has loaded them.

Owns the list of timers of a loaded group. Time before the load does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.streams.heartbeat import revocation_timer, session_timer
from pybroker.coordinator.group.streams.member import MemberState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.coordinator.group.streams.group import StreamsGroup
    from pybroker.coordinator.group.view import GroupView
    from pybroker.machine.machine import Timer


def load_streams_timers(view: GroupView, group: StreamsGroup, now: int) -> Iterator[Timer]:
    """Yield the session timers of all members, and the rebalance timeouts of those that revoke tasks."""
    for member_id, member in group.members.items():
        yield session_timer(view, group.id, member_id, now)
        if member.state is MemberState.UNREVOKED_TASKS:
            yield revocation_timer(group.id, member, now)
