"""Whatever happens to groups: their records rebuild them, and what is dropped leaves no trace."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group import events
from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.errors import GroupError
from pybroker.coordinator.group.group_change import Record
from pybroker.coordinator.group.ids import MemberId
from pybroker.coordinator.group.log import decode_records, encode_records
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.records import GroupRecord
from pybroker.protocol.messages.heartbeat import HeartbeatRequest
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pybroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.groups import group_settings

SETTINGS = group_settings(initial_rebalance_delay_ms=0, offsets_retention_ms=50_000)
GROUPS = ("g", "h")
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "join",
                "join",
                "again",
                "again",
                "sync",
                "sync",
                "beat",
                "leave",
                "commit",
                "commit",
                "due",
                "due",
                "delete",
                "gone",
            ]
        ),
        st.sampled_from(GROUPS),
        st.integers(0, 3),
        st.integers(0, 1 << 20),
    ),
    max_size=60,
)


class History:
    """A machine that was driven at random, and all it decided."""

    def __init__(self) -> None:
        self.machine = GroupMachine(SETTINGS)
        self.records: list[Record] = []
        self.now = 0
        self.timers: dict[Any, Any] = {}
        self.ids = 0

    def step(self, name: str, group_id: str, which: int, number: int) -> None:
        self.now += number % 5_000
        event = self.event(name, group_id, which, number)
        if event is None:
            return
        before = snapshot(self.machine)
        try:
            outcome = self.machine.handle(event, self.now)
        except GroupError:
            assert snapshot(self.machine) == before
            return
        assert snapshot(self.machine) == before, "handle changes nothing"
        draft = self.machine.draft()
        for record in outcome.records:
            draft.apply(record)
        if number % 7 == 0:
            draft.drop()
            assert snapshot(self.machine) == before, "what is dropped leaves no trace"
            return
        draft.keep()
        self.records += outcome.records
        for timer in outcome.timers:
            self.timers.pop(timer.key, None)
            if timer.deadline_ms is not None:
                self.timers[timer.key] = timer

    def event(self, name: str, group_id: str, which: int, number: int) -> Any:
        group = self.machine.state.group(group_id)
        members = [] if not isinstance(group, ClassicGroup) else [*group.members, *sorted(group.members.pending_joins)]
        member = members[which % len(members)] if members else MemberId("nobody")
        generation = group.generation if isinstance(group, ClassicGroup) else 0
        static = (
            None
            if not isinstance(group, ClassicGroup) or member not in group.members
            else group.members[member].instance_id
        )
        match name:
            case "join":
                return self.join(group_id, "", f"i{which}" if number % 3 == 0 else None, number)
            case "again":
                return self.join(group_id, member, static, number)
            case "sync":
                assignments = [SyncGroupRequestAssignment(member_id=one, assignment=one.encode()) for one in members]
                return events.SyncGroup(
                    SyncGroupRequest(
                        group_id=group_id, generation_id=generation, member_id=member, assignments=assignments
                    )
                )
            case "beat":
                return events.Heartbeat(HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member))
            case "leave":
                return events.LeaveGroup(
                    LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id=member)])
                )
            case "commit":
                outside = number % 4 == 0
                return commit(group_id, "" if outside else member, -1 if outside else generation, which, number)
            case "due":
                if not self.timers:
                    return events.ExpireOffsets()
                timer = min(self.timers.values(), key=lambda timer: timer.deadline_ms)
                del self.timers[timer.key]
                self.now = max(self.now, timer.deadline_ms)
                return timer.event
            case "delete":
                return events.DeleteGroups([group_id])
            case _:
                return events.TopicsDeleted([(f"t{which}", bytes(16))])

    def join(self, group_id: str, member: str, static: str | None, number: int) -> events.JoinGroup:
        self.ids += 1
        protocols = ["range", "sticky"][: 1 + number % 2]
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=6_000,
            rebalance_timeout_ms=9_000,
            member_id=member,
            group_instance_id=static,
            protocol_type="connect",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=bytes([number % 5])) for name in protocols],
        )
        return events.JoinGroup(request, 3 + number % 7, events.Client("c", "/h"), f"u{self.ids}")


def commit(group_id: str, member: str, generation: int, which: int, number: int) -> events.CommitOffsets:
    partition = OffsetCommitRequestPartition(
        partition_index=number % 3, committed_offset=number, committed_metadata="m"
    )
    topic = OffsetCommitRequestTopic(name=f"t{which}", topic_id=bytes([which]) * 16, partitions=[partition])
    return events.CommitOffsets(
        OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member,
            retention_time_ms=-1 if number % 5 else 1_000,
            topics=[topic],
        ),
        4,
    )


def snapshot(machine: GroupMachine) -> Any:
    return dict(machine.state.groups), {group: dict(offsets) for group, offsets in machine.state.all_offsets().items()}


def replayed(records: list[Any]) -> GroupMachine:
    machine = GroupMachine(SETTINGS)
    for record in records:
        machine.apply(record)
    return machine


@MANY
@given(steps)
def test_all_records_rebuild_the_state(taken: list[tuple[str, str, int, int]]) -> None:
    history = History()
    for step in taken:
        history.step(*step)
    assert snapshot(replayed(history.records)) == snapshot(history.machine)


@MANY
@given(steps)
def test_written_records_rebuild_offsets_and_groups_at_rest_through_their_bytes(
    taken: list[tuple[str, str, int, int]],
) -> None:
    history = History()
    for step in taken:
        history.step(*step)
    batches = encode_records(history.records, 0, codec=0, max_batch_bytes=500)
    read = [GroupRecord(key, value) for key, value in decode_records(batches).records] if batches else []
    again, machine = replayed(read), history.machine
    loaded = GroupMachine(SETTINGS)
    loaded.load([(record.key, record.value) for record in read])
    assert snapshot(loaded) == snapshot(again), "a load is all records, applied one by one"
    assert snapshot(again)[1] == snapshot(machine)[1]
    for group_id, group in machine.state.groups.items():
        assert isinstance(group, ClassicGroup)
        other = again.state.group(group_id)
        assert isinstance(other, ClassicGroup)
        if group.state in (ClassicState.STABLE, ClassicState.EMPTY) and group.generation:
            assert at_rest(other) == at_rest(group)


def at_rest(group: ClassicGroup) -> Any:
    members = {
        member.id: (member.instance_id, member.assignment, member.session_timeout_ms)
        for member in group.members.values()
    }
    return group.state, group.generation, group.protocol, group.leader, group.since_ms is None, members


@pytest.mark.parametrize("codec", range(5))
def test_records_pass_through_every_codec(codec: int) -> None:
    event = commit("g", "", -1, 1, 17)
    records = list(GroupMachine(SETTINGS).handle(event, 5).records) * 100
    batches = encode_records(records, 5, codec=codec, max_batch_bytes=1_000)
    chunk = decode_records(batches + batches[:30])
    assert [GroupRecord(*pair) for pair in chunk.records] == [
        GroupRecord(record.key, record.value) for record in records if isinstance(record, GroupRecord)
    ]
    assert (chunk.size, chunk.skipped) == (len(batches), 0)


def test_a_machine_is_not_shared_with_its_copy() -> None:
    history = History()
    for number in range(20):
        history.step("commit", "g", number % 4, 4 * number + 4)
    kept = copy.deepcopy(snapshot(history.machine))
    history.machine.draft()
    history.machine.apply(history.records[0])
    history.machine.drop()
    assert snapshot(history.machine) == kept
