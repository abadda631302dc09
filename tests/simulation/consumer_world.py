"""One coordinator of one group of either protocol, with what the runner gives it: a clock, timers, a log, mishaps.

The coordinator is the real machine; its log is a list. An append fails now and then and another broker takes over,
which knows what was written and nothing else. After every event the invariants are looked at
(`consumer_invariants`); the clients stand in `consumers`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from random import Random
from typing import Any, NamedTuple

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.group.log import decode_records, encode_records
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.settings import ConsumerGroupSettings, MigrationPolicy
from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.group.settings import GroupSettings
from pybroker.coordinator.group.streams.settings import build_streams_settings
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.coordinator.runtime.errors import CoordinatorNotAvailableError
from pybroker.coordinator.runtime.machine import Loaded
from pybroker.machine.machine import Delayed, Timer
from pybroker.machine.runner import RETRY_MS
from pybroker.protocol.errors import ErrorCode
from tests.simulation.consumer_invariants import Invariants

GROUP = "g"
REBALANCE_TIMEOUT_MS = 30_000
SESSION_TIMEOUT_MS = 45_000
FAILED_APPENDS = 0.01
SETTINGS = GroupSettings(
    min_session_timeout_ms=6000,
    max_session_timeout_ms=1_800_000,
    initial_rebalance_delay_ms=0,
    max_size=2**31 - 1,
    new_member_join_timeout_ms=300_000,
    offset_metadata_max_bytes=4096,
    offsets_retention_ms=10**12,
    offsets_retention_check_interval_ms=10**12,
    consumer=ConsumerGroupSettings(
        session_timeout_ms=SESSION_TIMEOUT_MS,
        session_timeout_range_ms=(SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS),
        heartbeat_interval_ms=5000,
        heartbeat_interval_range_ms=(5000, 5000),
        max_size=2**31 - 1,
        assignors=("uniform", "range"),
        migration_policy=MigrationPolicy.BIDIRECTIONAL,
        assignment_interval_ms=1000,
        assignment_interval_range_ms=(0, 1000),
        regex_refresh_interval_ms=600_000,
    ),
    streams=build_streams_settings(BrokerConfig({})),
)

Partitions = set[tuple[str, int]]


class Refusal(NamedTuple):
    """In place of a parked reply: the coordinator has moved."""

    error_code: int


class World:
    """The coordinator, its timers and parked replies, its log, the topics, and what was acknowledged."""

    def __init__(self, random: Random, settings: GroupSettings = SETTINGS, *, mishaps: bool = False) -> None:
        self.random = random
        self.mishaps = mishaps
        self.now = 1_000_000
        self.topics = Topics()
        self._settings = settings
        self.machine = GroupMachine(settings, lambda: self.topics)
        self.records: list[GroupRecord] = []
        self.timers: dict[Hashable, Timer] = {}
        # Invariant: no timer is due before it.
        self._earliest = 10**15
        self.delayed: dict[Hashable, Callable[[Any], None]] = {}
        # How often something has changed: the group, or what a client reads.
        self.changes = 0
        # Members that were taken out and may not know it yet.
        self.fenced: set[str] = set()
        self.invariants = Invariants()
        for name in ("a", "b"):
            self.add_topic(name, random.randint(1, 6))

    def add_topic(self, name: str, partitions: int) -> None:
        """Make a topic, or let one grow."""
        known = self.topics.by_name.get(name)
        topic_id = self.random.randbytes(16) if known is None else known.topic_id
        count = partitions if known is None else max(partitions, known.partitions)
        version = self.topics.version + 1 if known is None else self.topics.version
        by_name = {**self.topics.by_name, name: TopicInfo(topic_id, count)}
        self.topics = Topics(by_name, {info.topic_id: name for name, info in by_name.items()}, version)

    def submit(self, event: Any, on_reply: Callable[[Any], None] | None = None) -> Any:
        """Have an event decided on and its records committed; a parked reply comes later, and None is returned."""
        outcome = self.machine.handle(event, self.now)
        if outcome.records:
            self._append(outcome.records)
        for timer in outcome.timers:
            self._set(timer)
        reply = outcome.reply
        if isinstance(reply, Delayed):
            assert on_reply is not None
            self.delayed[reply.key] = on_reply
            reply = None
        for key, response in outcome.responses:
            waiting = self.delayed.pop(key, None)
            if waiting is not None:
                self.changes += 1
                waiting(response)
        return reply

    def _append(self, records: tuple[Any, ...]) -> None:
        before = self.group
        draft = self.machine.draft()
        for record in records:
            draft.apply(record)
        if self.mishaps and self.random.random() < FAILED_APPENDS:
            draft.drop()
            assert self.group is before, "a failed append has changed the group"
            self.invariants.check_offsets(self.machine.state.offsets(GROUP))
            raise CoordinatorNotAvailableError
        draft.keep()
        self.records += [record for record in records if type(record) is GroupRecord]
        self.changes += 1
        self._look(before)
        self.invariants.check_offsets(self.machine.state.offsets(GROUP))

    def _look(self, before: Any) -> None:
        group = self.group
        if group is before:
            return
        if before is not None:
            self.fenced.update(before.members if group is None else before.members.keys() - group.members.keys())
        self.invariants.check_group(before, group)

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass and timers fire."""
        end = self.now + milliseconds
        while self._earliest <= end:
            timer = min(self.timers.values(), key=_deadline, default=None)
            if timer is None or _deadline(timer) > end:
                self._earliest = 10**15 if timer is None else _deadline(timer)
                break
            del self.timers[timer.key]
            self.now = max(self.now, _deadline(timer))
            try:
                self.submit(timer.event)
            except CoordinatorNotAvailableError:
                self._set(timer._replace(deadline_ms=self.now + RETRY_MS))
        self.now = end

    def _set(self, timer: Timer) -> None:
        if timer.deadline_ms is None:
            self.timers.pop(timer.key, None)
        elif not (timer.if_absent and timer.key in self.timers):
            self.timers[timer.key] = timer
            self._earliest = min(self._earliest, timer.deadline_ms)

    def move(self) -> None:
        """Let another broker take over: it knows what was written, and those who wait are sent away."""
        before, offsets = self.group, self.machine.state.offsets(GROUP)
        self.machine = self.reloaded()
        assert self.machine.state.offsets(GROUP) == offsets, "a committed offset is lost"
        # Of a rebalance among members of the classic protocol nothing is written before it ends.
        if isinstance(before, ConsumerGroup) or isinstance(self.group, ConsumerGroup):
            assert self.group == before, "replaying the records does not give the group"
        elif before is not None:
            removed = before.members if self.group is None else before.members.keys() - self.group.members.keys()
            self.fenced.update(removed)
        delayed, self.delayed, self.timers = self.delayed, {}, {}
        self.submit(Loaded())
        for on_reply in delayed.values():
            on_reply(Refusal(ErrorCode.NOT_COORDINATOR))

    def reloaded(self) -> GroupMachine:
        """Return a fresh machine that has read the log, through its bytes."""
        fresh = GroupMachine(self._settings, lambda: self.topics)
        log = encode_records(self.records, self.now, codec=0, max_batch_bytes=1 << 20) if self.records else b""
        while log:
            chunk = decode_records(log)
            fresh.load(chunk.records)
            log = log[chunk.size :]
        return fresh

    def replayed(self) -> GroupMachine:
        """Return a fresh machine that was given the log's records."""
        fresh = GroupMachine(self._settings, lambda: self.topics)
        fresh.load((record.key, record.value) for record in self.records)
        return fresh

    @property
    def group(self) -> Any:
        """The group as it is now."""
        return self.machine.state.group(GROUP)


def _deadline(timer: Timer) -> int:
    assert timer.deadline_ms is not None
    return timer.deadline_ms
