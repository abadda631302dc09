"""One coordinator of streams groups, with what the runner gives it: a clock, timers and a log."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.group.events import Client, StreamsHeartbeat
from pybroker.coordinator.group.log import decode_records, encode_records
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.group.settings import build_settings
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.member import StreamsMember
from pybroker.coordinator.group.streams.tasks import without_epochs
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.coordinator.runtime.machine import Loaded
from pybroker.machine.machine import Timer
from pybroker.protocol.messages import streams_group_heartbeat as message

GROUP = "g"
SETTINGS = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}
TOPOLOGY = message.Topology(
    epoch=3,
    subtopologies=[
        message.Subtopology(
            subtopology_id="0", source_topics=["in"], repartition_sink_topics=["words"], state_changelog_topics=[]
        ),
        message.Subtopology(
            subtopology_id="1",
            repartition_source_topics=[message.TopicInfo(name="words")],
            state_changelog_topics=[
                message.TopicInfo(
                    name="counts", topic_configs=[message.KeyValue(key="cleanup.policy", value="compact")]
                )
            ],
        ),
    ],
)
"""A word count: `in` -> 0 -> `words` -> 1, with the changelog `counts`."""


class StreamsWorld:
    """A machine, its timers, its log, and the topics."""

    def __init__(self, **settings: str) -> None:
        given = {**SETTINGS, **{key.replace("_", "."): value for key, value in settings.items()}}
        self._settings = build_settings(BrokerConfig(given))
        self.now = 1_000_000
        self.topics = Topics()
        self.machine = self._fresh()
        self.records: list[GroupRecord] = []
        self.timers: dict[Hashable, Timer] = {}

    def _fresh(self) -> GroupMachine:
        return GroupMachine(self._settings, lambda: self.topics)

    def set_topics(self, **partitions: int) -> None:
        """Set the cluster's topics, by their partition counts."""
        by_name = {name: TopicInfo(name.encode().ljust(16, b"."), count) for name, count in partitions.items()}
        self.topics = Topics(by_name, {info.topic_id: name for name, info in by_name.items()}, 1)

    def submit(self, event: Any) -> Any:
        """Decide about an event, and commit its records."""
        outcome = self.machine.handle(event, self.now)
        draft = self.machine.draft()
        for record in outcome.records:
            draft.apply(record)
        draft.keep()
        self.records += [record for record in outcome.records if type(record) is GroupRecord]
        for timer in outcome.timers:
            if timer.deadline_ms is None:
                self.timers.pop(timer.key, None)
            elif not (timer.if_absent and timer.key in self.timers):
                self.timers[timer.key] = timer
        return outcome.reply

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass and timers fire."""
        end = self.now + milliseconds
        while due := [timer for timer in self.timers.values() if (timer.deadline_ms or 0) <= end]:
            timer = min(due, key=lambda one: one.deadline_ms or 0)
            del self.timers[timer.key]
            self.now = max(self.now, timer.deadline_ms or 0)
            self.submit(timer.event)
        self.now = end

    def beat(self, member_id: str, epoch: int, *, version: int = 1, **reported: Any) -> Any:
        """Send a heartbeat; returns the response. `owned` are active tasks by subtopology."""
        return self.beat_for_reply(member_id, epoch, version=version, **reported).response

    def beat_for_reply(self, member_id: str, epoch: int, *, version: int = 1, **reported: Any) -> Any:
        """As `beat`, but returns the whole reply."""
        owned: Mapping[str, Any] | None = reported.pop("owned", None)
        if owned is not None:
            reported["active_tasks"] = [message.TaskIds(subtopology_id=p, partitions=list(i)) for p, i in owned.items()]
            reported.setdefault("standby_tasks", [])
            reported.setdefault("warmup_tasks", [])
        request = message.StreamsGroupHeartbeatRequest(
            group_id=GROUP, member_id=member_id, member_epoch=epoch, **reported
        )
        return self.submit(StreamsHeartbeat(request, version, Client("client", "/1.2.3.4")))

    def join(self, member_id: str, **reported: Any) -> Any:
        """Join with the word count, in a process of the member's own."""
        return self.join_for_reply(member_id, **reported).response

    def join_for_reply(self, member_id: str, **reported: Any) -> Any:
        """As `join`, but returns the whole reply."""
        first = {"rebalance_timeout_ms": 10_000, "topology": TOPOLOGY, "owned": {}, "process_id": f"of {member_id}"}
        return self.beat_for_reply(member_id, 0, **{**first, **reported})

    @property
    def group(self) -> StreamsGroup:
        """The group as it is now."""
        group = self.machine.state.group(GROUP)
        assert isinstance(group, StreamsGroup)
        return group

    def member(self, member_id: str) -> StreamsMember:
        """A member as it is now."""
        return self.group.member(member_id)

    def active(self, member_id: str) -> dict[str, list[int]]:
        """The active tasks of a member."""
        return {part: sorted(held) for part, held in without_epochs(self.member(member_id).assigned.active).items()}

    def move(self) -> None:
        """Let another broker take over, which has read the log through its bytes."""
        fresh = self._fresh()
        log = encode_records(self.records, self.now, codec=0, max_batch_bytes=1 << 20)
        while log:
            chunk = decode_records(log)
            fresh.load(chunk.records)
            log = log[chunk.size :]
        self.machine, self.timers = fresh, {}
        self.submit(Loaded())

    def written(self, group: StreamsGroup) -> StreamsGroup:
        """The group without what is in memory only."""
        return msgspec.structs.replace(group, is_delayed=False, shutdown_by=None, endpoint_epoch=0, task_offsets={})


def active_of(response: Any) -> dict[str, list[int]]:
    """The active tasks of a response."""
    return {task.subtopology_id: task.partitions for task in response.active_tasks}


def standby_of(response: Any) -> dict[str, list[int]]:
    """The standby tasks of a response."""
    return {task.subtopology_id: task.partitions for task in response.standby_tasks}


def statuses_of(response: Any) -> dict[int, str]:
    """The details of a response's statuses by code."""
    return {status.status_code: status.status_detail for status in response.status}
