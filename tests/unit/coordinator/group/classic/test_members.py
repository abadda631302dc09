"""What members of a large group cost the coordinator: the same for each, however many there are."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from pybroker.coordinator.group import events
from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.ids import GroupId, MemberId
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.machine.machine import Outcome
from pybroker.protocol.messages.heartbeat import HeartbeatRequest
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from pybroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.groups import group_settings

SMALL, LARGE = 50, 1_000
GROUP = GroupId("g")


class Group:
    """A machine with one group, and how many Python frames each decision took: calls, and turns of generators."""

    def __init__(self, members: int, *, static: bool = False) -> None:
        self.machine = GroupMachine(group_settings(initial_rebalance_delay_ms=3000))
        self.static = static
        self.ids = itertools.count()
        self.joining = max(self.join(number) for number in range(members))
        delay = events.InitialDelayOver(GROUP, 3000, 0)
        self.completing, _ = self.frames(delay)
        self.members = list(self.group.members)
        self.syncing = max(self.sync(member) for member in self.members if member != self.group.leader)
        assert self.group.leader is not None
        self.assigning = self.sync(self.group.leader)
        assert self.group.state is ClassicState.STABLE

    @property
    def group(self) -> ClassicGroup:
        group = self.machine.state.group("g")
        assert isinstance(group, ClassicGroup)
        return group

    def join(self, number: int) -> int:
        event = self.join_event(number, "")
        frames, outcome = self.frames(event)
        if self.static:
            return frames
        assert isinstance(outcome.reply, JoinGroupResponse)
        return frames + self.frames(self.join_event(number, outcome.reply.member_id))[0]

    def join_event(self, number: int, member_id: str) -> events.JoinGroup:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=f"i{number}" if self.static else None,
            protocol_type="connect",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=b"m") for name in ("range", "sticky")],
        )
        return events.JoinGroup(request, 9, events.Client("c", "/h"), f"u{next(self.ids)}")

    def sync(self, member_id: str) -> int:
        assignments = [SyncGroupRequestAssignment(member_id=one, assignment=b"a") for one in self.members]
        leads = member_id == self.group.leader
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.group.generation,
            member_id=member_id,
            assignments=assignments if leads else [],
        )
        return self.frames(events.SyncGroup(request))[0]

    def beat(self, member_id: str) -> int:
        instance_id = self.group.members[MemberId(member_id)].instance_id
        request = HeartbeatRequest(
            group_id="g", generation_id=self.group.generation, member_id=member_id, group_instance_id=instance_id
        )
        return self.frames(events.Heartbeat(request))[0]

    def leave(self, member_id: str) -> int:
        return self.frames(
            events.LeaveGroup(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)]))
        )[0]

    def frames(self, event: Any) -> tuple[int, Outcome[Any, Any]]:
        frames = 0

        def count(_frame: FrameType, what: str, _argument: Any) -> None:
            nonlocal frames
            frames += what == "call"

        before = sys.getprofile()
        # A collection of garbage runs finalizers and callbacks of other tests, in frames of their own.
        gc.disable()
        sys.setprofile(count)
        try:
            draft = self.machine.draft()
            outcome = draft.handle(event, 0)
            for record in outcome.records:
                draft.apply(record)
            draft.keep()
        finally:
            sys.setprofile(before)
            gc.enable()
        return frames, outcome


@pytest.fixture(scope="module", params=[False, True], ids=["dynamic", "static"])
def groups(request: pytest.FixtureRequest) -> tuple[Group, Group]:
    return Group(SMALL, static=request.param), Group(LARGE, static=request.param)


def test_a_member_joins_and_asks_for_its_share_at_the_same_cost(groups: tuple[Group, Group]) -> None:
    small, large = groups
    assert large.joining <= small.joining + 5
    assert large.syncing <= small.syncing + 5


def test_the_end_of_a_rebalance_costs_each_member_the_same(groups: tuple[Group, Group]) -> None:
    small, large = groups
    for spent in (
        lambda group: group.completing / len(group.members),
        lambda group: group.assigning / len(group.members),
    ):
        assert spent(large) <= 1.2 * spent(small)


@pytest.mark.parametrize(
    "act",
    [
        lambda group: group.beat(group.members[1]),
        lambda group: group.leave(group.members[-1]),
        lambda group: group.leave(group.members[0]),
        lambda group: group.frames(events.SessionOver(GROUP, group.members[-2]))[0],
    ],
    ids=["heartbeat", "leave", "the leader leaves", "expiry"],
)
def test_what_a_member_does_costs_the_same(groups: tuple[Group, Group], act: Callable[[Group], int]) -> None:
    small, large = groups
    assert act(large) <= act(small) + 5
