"""The group machine's transcripts: `groups_*.txt`.

Commands: `join CLIENT [as=MEMBER] [static=ID] [v=VERSION] [protocols=NAME:METADATA,...] [type=T] [session=MS]
[rebalance=MS] [why=REASON]`, `sync MEMBER GENERATION [MEMBER=ASSIGNMENT ...] [static=ID]`, `beat MEMBER GENERATION
[static=ID]`, `leave MEMBER|static=ID ...`, `commit [MEMBER GENERATION] TOPIC/PARTITION=OFFSET ... [metadata=TEXT]
[keep=MS]`, `fetch [TOPIC/PARTITION ...]`, `forget TOPIC/PARTITION ...`, `wait MS` (timers ring meanwhile), `describe`,
`list [state=S] [type=T]`, `delete`, `gone TOPIC`, `restart` (another coordinator replays what was written), `group`.
All are about the group `g`. Random ids are u1, u2 ... Timers of sessions are not shown when they are set.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pybroker.coordinator.group import events
from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.errors import GroupError
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.runtime.machine import Loaded
from pybroker.machine.machine import Delayed, Outcome, Timer
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.heartbeat import HeartbeatRequest
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pybroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pybroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.groups import group_settings
from tests.transcripts.transcript import check_transcript

HERE = Path(__file__).parent
GROUP = "g"
LATEST = 9


class Stage:
    """A machine, a clock, its timers, and the text of what it answers."""

    def __init__(self) -> None:
        self.settings = group_settings(initial_rebalance_delay_ms=3000, offsets_retention_ms=100_000)
        self.machine = GroupMachine(self.settings)
        self.written: list[GroupRecord] = []
        self.timers: dict[Any, Timer] = {}
        self.now = 0
        self.ids = itertools.count(1)

    def report(self, command: str) -> str:
        name, *words = shlex.split(command)
        values = dict(word.split("=", 1) for word in words if "=" in word)
        bare = [word for word in words if "=" not in word]
        if name in ("wait", "restart", "group"):
            return "\n".join(getattr(self, f"do_{name}")(bare))
        return "\n".join(self.step(getattr(self, f"event_{name}")(bare, values)))

    def step(self, event: Any) -> Iterator[str]:
        try:
            outcome: Outcome[Any, Any] = self.machine.handle(event, self.now)
        except GroupError as error:
            yield error.code.name
            return
        for record in outcome.records:
            self.machine.apply(record)
        if isinstance(outcome.reply, Delayed):
            yield "(waits)"
        elif outcome.reply is not None:
            yield show(outcome.reply)
        for response in outcome.responses:
            yield f"to {' '.join(map(str, response.key[::2]))}: {show(response.reply)}"  # type: ignore[index]
        for record in outcome.records:
            if isinstance(record, GroupRecord):
                self.written.append(record)
                yield f"+ {show_record(record)}"
            elif record.why:
                yield f"  rebalances: {record.why}"
        yield from self.set_timers(outcome.timers)

    def set_timers(self, timers: tuple[Timer, ...]) -> Iterator[str]:
        for timer in timers:
            before = self.timers.pop(timer.key, None)
            if timer.deadline_ms is not None:
                self.timers[timer.key] = timer
            kind = timer.key[0] if isinstance(timer.key, tuple) else timer.key
            if kind in ("join", "sync") and (before is not None or timer.deadline_ms is not None):
                yield f"  {kind} timer: {'cancelled' if timer.deadline_ms is None else timer.deadline_ms}"

    def do_wait(self, words: list[str]) -> Iterator[str]:
        until = self.now + int(words[0])
        while due := [timer for timer in self.timers.values() if (timer.deadline_ms or 0) <= until]:
            timer = min(due, key=lambda timer: timer.deadline_ms or 0)
            del self.timers[timer.key]
            self.now = timer.deadline_ms or 0
            lines = list(self.step(timer.event))
            if lines:
                of_event = " ".join(map(str, fields(timer.event)[1:]))
                yield f"at {self.now}: {type(timer.event).__name__} {of_event}".rstrip()
                yield from lines
        self.now = until
        yield f"it is {self.now}"

    def do_restart(self, _words: list[str]) -> Iterator[str]:
        self.machine, self.timers = GroupMachine(self.settings), {}
        for record in self.written:
            self.machine.apply(record)
        yield f"{len(self.written)} records"
        yield from self.step(Loaded())

    def do_group(self, _words: list[str]) -> Iterator[str]:
        group = self.machine.state.group(GROUP)
        if not isinstance(group, ClassicGroup):
            yield "there is none"
            return
        yield f"{group.state.value} generation {group.generation} protocol {group.protocol} leader {group.leader}"
        for member in group.members.values():
            waits = " waits" if member.awaiting_join or member.awaiting_sync else ""
            yield f"  {member.id}: {member.assignment.decode() or '-'}{waits}"
        for pending in sorted(group.members.pending_joins):
            yield f"  {pending}: pending"

    def event_join(self, bare: list[str], values: dict[str, str]) -> events.JoinGroup:
        protocols = values.get("protocols", "range:a")
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(values.get("session", 10_000)),
            rebalance_timeout_ms=int(values.get("rebalance", 60_000)),
            member_id=values.get("as", ""),
            group_instance_id=values.get("static"),
            protocol_type=values.get("type", "connect"),
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata.encode())
                for name, _, metadata in (text.partition(":") for text in protocols.split(",") if text)
            ],
            reason=values.get("why"),
        )
        client = events.Client(bare[0], "/10.0.0.1")
        return events.JoinGroup(request, int(values.get("v", LATEST)), client, f"u{next(self.ids)}")

    def event_sync(self, bare: list[str], values: dict[str, str]) -> events.SyncGroup:
        return events.SyncGroup(
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=int(bare[1]),
                member_id=bare[0],
                group_instance_id=values.pop("static", None),
                assignments=[
                    SyncGroupRequestAssignment(member_id=member, assignment=assignment.encode())
                    for member, assignment in values.items()
                ],
            )
        )

    def event_beat(self, bare: list[str], values: dict[str, str]) -> events.Heartbeat:
        return events.Heartbeat(
            HeartbeatRequest(
                group_id=GROUP,
                generation_id=int(bare[1]),
                member_id=bare[0],
                group_instance_id=values.get("static"),
            )
        )

    def event_leave(self, bare: list[str], values: dict[str, str]) -> events.LeaveGroup:
        members = [MemberIdentity(member_id=member, group_instance_id=values.get("static")) for member in bare]
        members = members or [MemberIdentity(member_id="", group_instance_id=values.get("static"))]
        return events.LeaveGroup(LeaveGroupRequest(group_id=GROUP, members=members))

    def event_commit(self, bare: list[str], values: dict[str, str]) -> events.CommitOffsets:
        metadata, keep = values.pop("metadata", ""), int(values.pop("keep", -1))
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for partition, offset in values.items():
            name, _, index = partition.partition("/")
            topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name, topic_id=topic_id(name)))
            topic.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=int(index), committed_offset=int(offset), committed_metadata=metadata
                )
            )
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=int(bare[1]) if bare else -1,
            member_id=bare[0] if bare else "",
            retention_time_ms=keep,
            topics=list(topics.values()),
        )
        return events.CommitOffsets(request, LATEST)

    def event_fetch(self, bare: list[str], _values: dict[str, str]) -> events.FetchOffsets:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=[index]) for name, index in map(partition_of, bare)
        ]
        return events.FetchOffsets(OffsetFetchRequestGroup(group_id=GROUP, topics=topics or None))

    def event_forget(self, bare: list[str], _values: dict[str, str]) -> events.DeleteOffsets:
        topics = [
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
            for name, index in map(partition_of, bare)
        ]
        return events.DeleteOffsets(OffsetDeleteRequest(group_id=GROUP, topics=topics))

    def event_describe(self, _bare: list[str], _values: dict[str, str]) -> events.DescribeGroups:
        return events.DescribeGroups([GROUP], 6)

    def event_list(self, _bare: list[str], values: dict[str, str]) -> events.ListGroups:
        states, types = values.get("state"), values.get("type")
        return events.ListGroups([states.lower()] if states else (), [types.lower()] if types else ())

    def event_delete(self, _bare: list[str], _values: dict[str, str]) -> events.DeleteGroups:
        return events.DeleteGroups([GROUP])

    def event_gone(self, bare: list[str], _values: dict[str, str]) -> events.TopicsDeleted:
        return events.TopicsDeleted([(bare[0], topic_id(bare[0]))])


def fields(event: Any) -> tuple[Any, ...]:
    return msgspec.structs.astuple(event) if isinstance(event, msgspec.Struct) else tuple(event)


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def partition_of(text: str) -> tuple[str, int]:
    name, _, index = text.partition("/")
    return name, int(index)


def show(value: Any) -> str:
    """A message by its fields that are not at their defaults; names of errors for codes."""
    if isinstance(value, list):
        return f"[{', '.join(map(show, value))}]"
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode() or "-"
    if not isinstance(value, msgspec.Struct):
        return str(value)
    blank = type(value)()
    fields = []
    for name in value.__struct_fields__:
        field = getattr(value, name)
        if name == "error_code":
            fields += [ErrorCode(field).name] if field else []
        elif field != getattr(blank, name) and name != "topic_id":
            fields.append(f"{name}={show(field)}")
    return f"({' '.join(fields)})" if fields else "ok"


def show_record(record: GroupRecord) -> str:
    kind = type(record.key).__name__.removesuffix("Key")
    key = "/".join(str(getattr(record.key, name)) for name in record.key.__struct_fields__)
    return f"{kind} {key}: {'tombstone' if record.value is None else show(record.value)}"


@pytest.mark.parametrize("path", sorted(HERE.glob("groups_*.txt")), ids=lambda path: path.stem)
def test_the_group_machine_answers_as_written(path: Path, request: pytest.FixtureRequest) -> None:
    check_transcript(path, Stage().report, rewrite=request.config.getoption("--rewrite"))
