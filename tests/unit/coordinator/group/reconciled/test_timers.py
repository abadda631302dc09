"""The timers of loaded groups of both types."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.modern import member as modern
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.reconciled.timers import MemberSilent, RevocationOverdue, revocation_timer
from pybroker.coordinator.group.streams import member as streams
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.machine.machine import Timer

REVOKING: dict[str, Any] = {"epoch": 3, "rebalance_timeout_ms": 500}
CONSUMER = modern.Member("m", state=modern.MemberState.UNREVOKED_PARTITIONS, **REVOKING)
STREAMS = streams.StreamsMember("m", state=streams.MemberState.UNREVOKED_TASKS, **REVOKING)


@pytest.mark.parametrize(
    "group",
    [
        ConsumerGroup(GroupId("g"), members={"m": CONSUMER, "s": modern.Member("s")}),
        StreamsGroup(GroupId("g"), members={"m": STREAMS, "s": streams.StreamsMember("s")}),
    ],
)
def test_a_loaded_group_has_its_sessions_and_its_revocations(group: ConsumerGroup | StreamsGroup) -> None:
    assert list(group.load_timers(100, 1_000)) == [
        Timer(("session", "g", "m"), 1_100, MemberSilent("g", "m")),
        Timer(("revocation", "g", "m"), 1_500, RevocationOverdue("g", "m", 3)),
        Timer(("session", "g", "s"), 1_100, MemberSilent("g", "s")),
    ]


def test_a_member_without_a_revocation_has_its_timer_cancelled() -> None:
    assert revocation_timer("g", modern.Member("s"), 1_000) == Timer(("revocation", "g", "s"), None)


def test_a_member_of_the_classic_protocol_has_no_revocation() -> None:
    member = modern.Member(
        "m", state=modern.MemberState.UNREVOKED_PARTITIONS, classic=modern.ClassicMember(45_000, ()), **REVOKING
    )
    group = ConsumerGroup(GroupId("g"), members={"m": member})
    assert [timer.key for timer in group.load_timers(100, 0)] == [("session", "g", "m")]
