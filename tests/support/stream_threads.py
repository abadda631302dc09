"""A stream thread whose consumer and producer are scripted, so that a test runs its steps one by one."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.streams import StreamsRules
from pybroker.client.membership.streams_events import GroupTask, GroupTasks
from pybroker.client.transaction.consumed import Consumed
from pybroker.client.transaction.group_metadata import GroupMetadata
from pybroker.streams.application import stream_thread
from pybroker.streams.application.group_topology import group_topology
from pybroker.streams.application.settings import parse_settings
from pybroker.streams.application.states import UncaughtResponse
from pybroker.streams.application.stream_thread import StreamThread, ThreadContext
from pybroker.streams.state.directory import StateDirectory
from pybroker.streams.topology.topology import Topology


def polled(topic: str, offset: int, value: str, partition: int = 0) -> Any:
    """Return a record as a consumer returns it, with the key `k` and its offset as timestamp."""
    return SimpleNamespace(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=offset,
        key=b"k",
        value=value.encode(),
        headers=(),
    )


class ScriptedConsumer:
    """A consumer of one assignment, whose polls return the records of a list and are recorded."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self.assigned: frozenset[TopicPartition] = frozenset()
        self.paused: set[TopicPartition] = set()
        self.poll_timeouts: list[float] = []
        self.batches: list[list[Any]] = []
        self.is_closed = False

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions."""
        return self.assigned

    def poll(self, timeout_s: float, _most: int = 0) -> list[Any]:
        """Record the timeout, and return the next batch of records that are not paused."""
        self.poll_timeouts.append(timeout_s)
        batch = self.batches.pop(0) if self.batches else []
        return [record for record in batch if TopicPartition(record.topic, record.partition) not in self.paused]

    def pause(self, *partitions: TopicPartition) -> None:
        """Pause partitions."""
        self.paused |= set(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Resume partitions."""
        self.paused -= set(partitions)

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return offset 0 of each partition."""
        return {partition: OffsetAndMetadata(0) for partition in partitions}

    def consumed(self) -> Consumed:
        """Return no positions."""
        return Consumed({}, GroupMetadata("app"))

    def commit(self, _offsets: Any = None) -> None:
        """Do nothing."""

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign partitions, as a restore consumer does."""
        self.assigned = frozenset(partitions)

    def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """Return offset 0 of each partition."""
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """Return offset 1 of each partition."""
        return dict.fromkeys(partitions, 1)

    def position(self, _partition: TopicPartition) -> int:
        """Return 1 after the first poll."""
        return 1 if self.poll_timeouts else 0

    def seek(self, _partition: TopicPartition, _offset: int) -> None:
        """Do nothing."""

    def subscribe(self, _topics: Iterable[str], listener: Any = None) -> None:
        """Do nothing."""

    def close(self, _timeout_s: float = 0.0) -> None:
        """Record the call."""
        self.is_closed = True


def scripted_thread(
    monkeypatch: pytest.MonkeyPatch,
    topology: Topology,
    directory: StateDirectory | None = None,
    paused: threading.Event | None = None,
    **settings: Any,
) -> tuple[StreamThread, ScriptedConsumer]:
    """Return a thread that is not started, and its consumer."""
    monkeypatch.setattr(stream_thread, "Consumer", ScriptedConsumer)
    monkeypatch.setattr(stream_thread, "StreamProducer", lambda *_: Mock())
    given = {"application.id": "app", "bootstrap.servers": "localhost:1", "poll.ms": 70}
    if directory is not None:
        given["state.dir"] = str(Path(directory.path).parent)
    parsed = parse_settings({**given, **{key.replace("_", "."): value for key, value in settings.items()}})
    context = ThreadContext(
        topology=topology,
        settings=parsed,
        rules=StreamsRules(
            group_id="app", topology=group_topology(topology, parsed), process_id="one", max_poll_interval_s=300.0
        ),
        count_partitions=lambda _topic: 1,
        end_offsets=lambda partitions: dict.fromkeys(partitions, 1),
        on_restore=lambda _progress: None,
        decide=lambda _error: UncaughtResponse.SHUTDOWN_CLIENT,
        on_change=lambda: None,
        directory=directory,
        paused=paused or threading.Event(),
        global_lock=threading.RLock(),
        programs={},
    )
    thread = StreamThread(context, "app-StreamThread-1", 1)
    consumer = thread._consumer
    assert isinstance(consumer, ScriptedConsumer)
    return thread, consumer


def restore_consumer(thread: StreamThread) -> ScriptedConsumer:
    """Return the consumer of changelogs, which a thread opens when it begins to restore."""
    consumer = thread._changelogs._consumer
    assert isinstance(consumer, ScriptedConsumer)
    return consumer


def assign(
    thread: StreamThread,
    consumer: ScriptedConsumer,
    tasks: Collection[GroupTask],
    topics: list[str],
    standby: Collection[GroupTask] = (),
) -> None:
    """Assign tasks, as the driver of a group does inside a poll."""
    group_tasks = GroupTasks(active=frozenset(tasks), standby=frozenset(standby))
    thread._driver = Mock(target=lambda: group_tasks, owned_tasks=lambda: group_tasks, statuses=(), endpoints=())
    consumer.assigned = frozenset(TopicPartition(topic, task.partition) for topic in topics for task in tasks)
    thread.on_assigned(list(consumer.assigned))
