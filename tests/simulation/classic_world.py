"""A world of one coordinator and the members of one classic group: a clock, messages that take time, and mishaps.

Owns the schedule, which one seed decides wholly, and what a member does about each answer, as a consumer does. The
coordinator is the real machine, with its timers and parked replies; its log is a list. After every step of it the
invariants are looked at; at the end the mishaps stop, and everybody alive has to come to rest with a share.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from pybroker.coordinator.group import events
from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.errors import GroupError
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.runtime.errors import NotCoordinatorError
from pybroker.coordinator.runtime.machine import Loaded
from pybroker.machine.machine import Delayed, Timer
from pybroker.machine.runner import RETRY_MS
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.heartbeat import HeartbeatRequest
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from pybroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.groups import group_settings

GROUP = "g"
TOPIC_ID = b"t" * 16
SETTINGS = group_settings(initial_rebalance_delay_ms=500)
SESSION_MS = 6_000
REBALANCE_MS = 10_000
BEAT_MS = 2_000
LATEST = 9


class Coordinator:
    """The machine with what the runner gives it, and the invariants."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.machine = GroupMachine(SETTINGS)
        self.log: list[GroupRecord] = []
        self.timers: dict[Any, Timer] = {}
        self.delayed: dict[Any, Callable[[Any], None]] = {}
        self.generation = 0
        # What was acknowledged: partition to offset.
        self.acknowledged: dict[int, int] = {}

    def take(self, event: Any, on_reply: Callable[[Any], None] | None, timer: Timer | None = None) -> None:
        """Handle an event as the runner does, with an append that now and then fails."""
        world = self.world
        try:
            outcome = self.machine.handle(event, world.now)
        except GroupError as error:
            if on_reply is not None:
                on_reply(error.code)
            return
        draft = self.machine.draft()
        for record in outcome.records:
            draft.apply(record)
        if outcome.records and world.mishaps and world.dice.random() < 0.01:
            draft.drop()
            if on_reply is not None:
                on_reply(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            elif timer is not None:
                self.set(timer._replace(deadline_ms=world.now + RETRY_MS))
            self.check()
            return
        draft.keep()
        self.log += [record for record in outcome.records if type(record) is GroupRecord]
        for timer in outcome.timers:
            self.set(timer)
        if type(outcome.reply) is Delayed:
            if on_reply is not None:
                self.delayed[outcome.reply.key] = on_reply
        elif on_reply is not None:
            on_reply(outcome.reply)
        for key, reply in outcome.responses:
            waiting = self.delayed.pop(key, None)
            if waiting is not None:
                waiting(reply)
        self.check()

    def set(self, timer: Timer) -> None:
        if timer.deadline_ms is None:
            self.timers.pop(timer.key, None)
            return
        self.timers[timer.key] = timer
        self.world.at(timer.deadline_ms, lambda: self.ring(timer))

    def ring(self, timer: Timer) -> None:
        if self.timers.get(timer.key) is timer:
            del self.timers[timer.key]
            self.take(timer.event, None, timer)

    def move(self) -> None:
        """Let another broker take over: it knows what was written, and those who wait are sent away."""
        before = self.machine.state
        self.machine = GroupMachine(SETTINGS)
        for record in self.log:
            self.machine.apply(record)
        assert self.machine.state.offsets(GROUP) == before.offsets(GROUP), "a committed offset is lost"
        delayed, self.delayed, self.timers = self.delayed, {}, {}
        group = self.machine.state.group(GROUP)
        # A generation that did not come to rest was never written, so the next coordinator counts it again.
        self.generation = group.generation if isinstance(group, ClassicGroup) else 0
        self.take(Loaded(), None)
        for on_reply in delayed.values():
            on_reply(NotCoordinatorError.code)

    def check(self) -> None:
        """Look at what has to hold after every event."""
        group = self.machine.state.group(GROUP)
        if not isinstance(group, ClassicGroup):
            assert not self.acknowledged
            return
        assert group.generation >= self.generation, "a generation has gone back"
        self.generation = group.generation
        if group.state is ClassicState.STABLE:
            owned = [partition for member in group.members.values() for partition in member.assignment]
            assert len(owned) == len(set(owned)), "a partition has two owners"
            assert group.leader in group.members
        else:
            assert (not group.members) == (group.state is ClassicState.EMPTY) or group.state is not ClassicState.EMPTY
        waiting = [key[2] for key in self.delayed if key[0] == "join"]
        assert all(group.members[member].awaiting_join for member in waiting if member in group.members)
        committed = self.machine.state.offsets(GROUP)
        for partition, offset in self.acknowledged.items():
            assert committed["t", partition].offset >= offset, "a committed offset is lost"


class World:
    """Everything of one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now = 0
        self.mishaps = True
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._ordinal = 0
        self.partitions = self.dice.randint(1, 8)
        self.coordinator = Coordinator(self)
        size = self.dice.random()
        count = self.dice.randint(1, 4) if size < 0.75 else self.dice.randint(5, 12) if size < 0.985 else 50
        self.members = [Member(self, index) for index in range(count)]

    def at(self, when: int, call: Callable[[], None]) -> None:
        self._ordinal += 1
        heappush(self._due, (when, self._ordinal, call))

    def later(self, delay: int, call: Callable[[], None]) -> None:
        self.at(self.now + delay, call)

    def run(self) -> None:
        """Let mishaps happen for a while, then let everybody come to rest."""
        for member in self.members:
            # Of this life: a mishap may come first, and a member that starts again in a new life joins there. Were this
            # join one of that life too, the member would receive two shares, and commit of one under the other's id.
            self.later(self.dice.randint(0, 3_000), member.join_if(member.life))
        quiet_from = self.dice.randint(5_000, 20_000)
        moves = [self.dice.randint(0, quiet_from)] if self.dice.random() < 0.3 else []
        for when in moves:
            self.at(when, self.coordinator.move)
        for member in self.members:
            for _ in range(self.dice.choice((0, 0, 1, 2))):
                self.at(self.dice.randint(500, quiet_from), member.mishap)
        self.at(quiet_from, self.be_quiet)
        end = quiet_from + 4 * REBALANCE_MS
        while self._due and self._due[0][0] <= end and not self.at_rest(quiet_from):
            self.now, _, call = heappop(self._due)
            call()
        self.check_rest()

    def be_quiet(self) -> None:
        self.mishaps = False

    def at_rest(self, quiet_from: int) -> bool:
        """Whether nothing more will happen: the lost ones' sessions are over and everybody is stable."""
        if self.now < quiet_from + SESSION_MS + BEAT_MS:
            return False
        group = self.coordinator.machine.state.group(GROUP)
        alive = [member for member in self.members if member.alive]
        return (
            isinstance(group, ClassicGroup)
            and len(group.members) == len(alive)
            and group.state is (ClassicState.STABLE if alive else ClassicState.EMPTY)
            and all(member.stable and member.generation == group.generation for member in alive)
        )

    def check_rest(self) -> None:
        alive = [member for member in self.members if member.alive]
        assert all(member.stable for member in alive), "a live member has no assignment"
        shares = [set(member.share) for member in alive]
        assert sum(map(len, shares)) == len(set().union(*shares)) == (self.partitions if alive else 0)
        assert all(shares) or len(alive) > self.partitions


class Member:
    """A consumer: joins, asks for its share, beats, commits; and what may happen to it."""

    def __init__(self, world: World, index: int) -> None:
        self.world = world
        self.name = f"m{index}"
        self.static = f"i{index}" if world.dice.random() < 0.2 else None
        self.alive = True
        self.stalled_until = 0
        self.id = ""
        self.generation = -1
        self.stable = False
        self.share = b""
        # Answers to what was asked before it began anew are not for it.
        self.life = 0
        self.position = 0

    def send(self, event: Any, on_reply: Callable[[Any], None]) -> None:
        world, life = self.world, self.life

        def replied(reply: Any) -> None:
            world.later(world.dice.randint(1, 40), arrival_of(reply))

        def arrival_of(reply: Any) -> Callable[[], None]:
            def arrive() -> None:
                if self.life == life and self.alive:
                    if world.now < self.stalled_until:
                        world.at(self.stalled_until, arrive)
                    else:
                        on_reply(reply)

            return arrive

        world.later(world.dice.randint(1, 40), lambda: world.coordinator.take(event, replied))

    def join(self) -> None:
        self.stable = False
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.id,
            group_instance_id=self.static,
            protocol_type="connect",
            protocols=[JoinGroupRequestProtocol(name="share", metadata=self.name.encode())],
        )
        fresh = f"{self.world.dice.getrandbits(32):x}"
        client = events.Client(self.name, "/")
        self.send(events.JoinGroup(request, LATEST, client, fresh), self.joined)

    def joined(self, reply: JoinGroupResponse | ErrorCode) -> None:
        code = reply if isinstance(reply, ErrorCode) else ErrorCode(reply.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.id = reply.member_id  # type: ignore[union-attr]
            self.join()
        elif code is not ErrorCode.NONE:
            self.begin_anew(code)
        else:
            assert isinstance(reply, JoinGroupResponse)
            self.id, self.generation = reply.member_id, reply.generation_id
            shares: dict[str, bytearray] = {member.member_id: bytearray() for member in reply.members}
            if shares:
                for partition in range(self.world.partitions):
                    list(shares.values())[partition % len(shares)].append(partition)
            if reply.skip_assignment:
                shares = {}
            self.query(shares)

    def query(self, shares: dict[str, bytearray]) -> None:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.static,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=bytes(share))
                for member, share in shares.items()
            ],
        )
        self.send(events.SyncGroup(request), self.requested)

    def requested(self, reply: Any) -> None:
        code = reply if isinstance(reply, ErrorCode) else ErrorCode(reply.error_code)
        if code is not ErrorCode.NONE:
            self.begin_anew(code)
            return
        self.share = reply.assignment
        self.stable = True
        self.world.later(BEAT_MS, self.beat(self.life, self.generation))

    def beat(self, life: int, generation: int) -> Callable[[], None]:
        def go() -> None:
            if not self.alive or self.life != life or not self.stable or self.generation != generation:
                return
            if self.world.now < self.stalled_until:
                self.world.at(self.stalled_until, go)
                return
            if self.share and self.world.dice.random() < 0.5:
                self.commit()
            request = HeartbeatRequest(
                group_id=GROUP, generation_id=generation, member_id=self.id, group_instance_id=self.static
            )
            self.send(events.Heartbeat(request), self.beaten)
            self.world.later(BEAT_MS, go)

        return go

    def beaten(self, reply: Any) -> None:
        code = reply if isinstance(reply, ErrorCode) else ErrorCode(reply.error_code)
        if code is not ErrorCode.NONE and self.stable:
            self.begin_anew(code)

    def commit(self) -> None:
        partition = self.share[0]
        self.position = max(self.position, self.world.coordinator.acknowledged.get(partition, 0)) + 1
        offset, share, world = self.position, self.share, self.world
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.id,
            group_instance_id=self.static,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    topic_id=TOPIC_ID,
                    partitions=[OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)],
                )
            ],
        )
        sender = self.id

        def committed(reply: Any) -> None:
            if isinstance(reply, ErrorCode):
                return
            group = world.coordinator.machine.state.group(GROUP)
            assert isinstance(group, ClassicGroup)
            assert sender in group.members, "somebody commits who is no member"
            if group.state is ClassicState.STABLE:
                assert partition in group.members[sender].assignment, "somebody commits what is another's"  # type: ignore[index]
            world.coordinator.acknowledged[partition] = offset

        assert partition in share
        world.later(
            world.dice.randint(1, 40), lambda: world.coordinator.take(events.CommitOffsets(request, LATEST), committed)
        )

    def begin_anew(self, code: ErrorCode) -> None:
        """Join again, under a new id where the old one means nothing any more."""
        self.stable = False
        self.life += 1
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.generation = -1
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.id = ""
        self.world.later(100, self.join_if(self.life))

    def join_if(self, life: int) -> Callable[[], None]:
        def go() -> None:
            if self.alive and self.life == life:
                if self.world.now < self.stalled_until:
                    self.world.at(self.stalled_until, go)
                else:
                    self.join()

        return go

    def mishap(self) -> None:
        """Crash for good, crash and start again, stall, leave, or leave and come back."""
        if not self.alive:
            return
        dice = self.world.dice
        match dice.randrange(5):
            case 0:
                self.alive = False
            case 1:
                self.restart(dice.randint(0, 3_000))
            case 2:
                self.stalled_until = self.world.now + dice.randint(1_000, 2 * SESSION_MS)
            case 3:
                self.leave()
                self.alive = False
            case _:
                self.leave()
                self.restart(dice.randint(0, 3_000))

    def leave(self) -> None:
        identity = MemberIdentity(member_id=self.id, group_instance_id=self.static)
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        self.send(events.LeaveGroup(request), lambda _: None)

    def restart(self, delay: int) -> None:
        self.life += 1
        self.id, self.generation, self.stable = "", -1, False
        self.world.later(delay, self.join_if(self.life))
