"""SyncGroup whose assignment the log does not take."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group import events
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.machine.runner import Runner, UnwritableError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.heartbeat import HeartbeatRequest
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.groups import group_settings

TOO_LARGE = 1_000
CLIENT = events.Client("c", "/h")


def append(records: Any) -> None:
    """Take records, unless an assignment is too large."""
    for record in records:
        members = getattr(getattr(record, "value", None), "members", ())
        if any(len(member.assignment) >= TOO_LARGE for member in members):
            raise UnwritableError("the assignment is too large")


def join(number: int, member_id: str = "") -> events.JoinGroup:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )
    return events.JoinGroup(request, 3, CLIENT, f"u{number}")


def sync(member_id: str, assignments: dict[str, bytes] | None = None, generation: int = 2) -> events.SyncGroup:
    given = [SyncGroupRequestAssignment(member_id=one, assignment=share) for one, share in (assignments or {}).items()]
    request = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, assignments=given)
    return events.SyncGroup(request)


class Group:
    """A group of two members that are to ask for their assignments; replies come in the step that makes them."""

    def __init__(self) -> None:
        machine = GroupMachine(group_settings(initial_rebalance_delay_ms=0))
        self.runner: Runner[Any, Any] = Runner(machine, append, now=lambda: 1_000, max_records=1_000)
        self.replies: list[Any] = []

    async def begin(self) -> tuple[str, str]:
        """Have two members join; the ids of the leader and of the other."""
        first = self.runner.submit(join(1))
        self.runner.step()
        self.query(events.InitialDelayOver(GroupId("g"), 0, 0))
        leader = (await first).member_id
        self.query(sync(leader, {leader: b"all"}, 1))
        second, again = self.runner.submit(join(2)), self.runner.submit(join(1, leader))
        self.runner.step()
        follower = (await second).member_id
        assert (await again).leader == leader
        self.replies.clear()
        return leader, follower

    def query(self, event: Any) -> None:
        """Have an event decided on; its reply, or why there is none, goes to `replies`."""
        self.runner.queue(event, lambda reply, error: self.replies.append(reply if error is None else error))
        self.runner.step()

    @property
    def group(self) -> Any:
        return self.runner.machine.state.group("g")  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_alone", [True, False])
async def test_everybody_who_waits_receives_the_error_and_the_group_rebalances(is_alone: bool) -> None:
    group = Group()
    leader, follower = await group.begin()
    group.query(sync(follower))
    assert group.replies == []
    if not is_alone:
        group.runner.queue(sync("stranger"), lambda *_: None)
    group.query(sync(leader, {leader: b"x" * TOO_LARGE, follower: b"y"}))
    assert [(reply.error_code, reply.assignment) for reply in group.replies] == [
        (ErrorCode.UNKNOWN_SERVER_ERROR, b"")
    ] * 2
    assert group.group.state is ClassicState.PREPARING_REBALANCE
    assert [member.assignment for member in group.group.members.in_order()] == [b"", b""]
    assert group.runner.delayed == 0
    assert group.runner.has_timer(("join", "g"))
    assert not group.runner.has_timer(("sync", "g"))
    group.query(events.Heartbeat(HeartbeatRequest(group_id="g", generation_id=2, member_id=follower)))
    assert group.replies[-1].error_code == ErrorCode.REBALANCE_IN_PROGRESS


async def test_the_members_join_again_and_are_assigned() -> None:
    group = Group()
    leader, follower = await group.begin()
    group.query(sync(leader, {leader: b"x" * TOO_LARGE}))
    group.query(join(1, leader))
    group.query(join(2, follower))
    assert [reply.generation_id for reply in group.replies[1:]] == [3, 3]
    group.query(sync(follower, generation=3))
    group.query(sync(leader, {leader: b"a", follower: b"b"}, 3))
    assert sorted(reply.assignment for reply in group.replies[3:]) == [b"a", b"b"]
    assert group.group.state is ClassicState.STABLE
