"""What begins when a coordinator takes consumer groups over: everybody's time.

Owns which timers a group that was read from its log needs. What has passed before counts for nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.modern.heartbeat import revocation_timer, session_timer
from pybroker.coordinator.group.modern.member import MemberState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.coordinator.group.modern.group import ConsumerGroup
    from pybroker.coordinator.group.view import GroupView
    from pybroker.machine.machine import Timer


def load_timers(view: GroupView, group: ConsumerGroup, now: int) -> Iterator[Timer]:
    """Begin the sessions of all members, and the rebalance timeouts of those that give partitions back."""
    for member_id, member in group.members.items():
        yield session_timer(view, group.id, member_id, now)
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            yield revocation_timer(group.id, member, now)
