from __future__ import annotations

import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from pybroker.client.membership.streams_events import GroupTask, GroupTasks
from pybroker.protocol.messages.streams_group_heartbeat import Status
from pybroker.streams import STRING, Processor, ProcessorContext, PunctuationType, Record, StreamsBuilder
from pybroker.streams.state.directory import StateDirectory
from pybroker.streams.topology.topology import Topology
from tests.support.stream_threads import assign, polled, restore_consumer, scripted_thread

POLL_S = 0.07


def _stored(seen: list[str]) -> Topology:
    """Return a topology with a persistent store without a changelog."""
    builder = StreamsBuilder()
    table = builder.stream("in", key_serde=STRING, value_serde=STRING).group_by_key()
    table.reduce(lambda _old, new: new, store="last", logging=False).to_stream().foreach(
        lambda _key, value: seen.append(value)
    )
    return builder.build()


class _Punctual(Processor[str, str]):
    """Records the values and the calls of a punctuator that is always due."""

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def init(self, context: ProcessorContext) -> None:
        context.schedule(1, PunctuationType.STREAM_TIME, lambda _time: self._seen.append("punctuated"))

    def process(self, record: Record[str, str]) -> None:
        self._seen.append(record.value)


def _punctual(seen: list[str]) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", key_serde=STRING, value_serde=STRING).process(lambda: _Punctual(seen))
    return builder.build()


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path, "app")


def test_a_task_that_waits_for_its_directory_is_polled_at_the_interval(
    monkeypatch: pytest.MonkeyPatch, directory: StateDirectory
) -> None:
    seen: list[str] = []
    thread, consumer = scripted_thread(monkeypatch, _stored(seen), directory)
    directory.lock("0_0")
    assign(thread, consumer, [GroupTask("0", 0)], ["in"])
    for _ in range(3):
        thread._run_once()
    assert consumer.poll_timeouts == [POLL_S] * 3
    assert not thread.is_running
    directory.unlock("0_0")
    thread._run_once()
    assert thread.is_running


def test_no_record_is_polled_while_its_task_waits_for_its_directory(
    monkeypatch: pytest.MonkeyPatch, directory: StateDirectory
) -> None:
    seen: list[str] = []
    thread, consumer = scripted_thread(monkeypatch, _stored(seen), directory, statestore_cache_max_bytes=0)
    directory.lock("0_0")
    assign(thread, consumer, [GroupTask("0", 0)], ["in"])
    assert consumer.paused == consumer.assigned
    thread._run_once()
    directory.unlock("0_0")
    thread._run_once()
    assert not consumer.paused
    consumer.batches = [[polled("in", 0, "first")]]
    thread._run_once()
    assert seen == ["first"]


def test_a_paused_thread_polls_and_processes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    paused = threading.Event()
    thread, consumer = scripted_thread(monkeypatch, _punctual(seen), paused=paused)
    assign(thread, consumer, [GroupTask("0", 0)], ["in"])
    consumer.batches = [[], [polled("in", 0, "first")], [polled("in", 1, "second")]]
    paused.set()
    for _ in range(3):
        thread._run_once()
    assert (thread.is_running, seen) == (True, [])
    assert consumer.poll_timeouts[1:] == [POLL_S] * 2
    paused.clear()
    thread._run_once()
    assert [it for it in seen if it != "punctuated"] == ["first", "second"]
    assert "punctuated" in seen


def test_a_paused_thread_restores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StreamsBuilder()
    builder.stream("in", key_serde=STRING, value_serde=STRING).group_by_key().count(store="counts")
    paused = threading.Event()
    paused.set()
    thread, consumer = scripted_thread(monkeypatch, builder.build(), paused=paused, default_dsl_store="in_memory")
    assign(thread, consumer, [GroupTask("0", 0)], ["in"])
    thread._run_once()
    restoring = restore_consumer(thread)
    assert (restoring.poll_timeouts, thread.is_running) == ([], False)
    assert consumer.poll_timeouts == [POLL_S]
    paused.clear()
    thread._run_once()
    assert (restoring.poll_timeouts, thread.is_running) == ([POLL_S], True)


def test_a_standby_task_that_becomes_active_continues_where_it_was(
    monkeypatch: pytest.MonkeyPatch, directory: StateDirectory
) -> None:
    builder = StreamsBuilder()
    builder.stream("in", key_serde=STRING, value_serde=STRING).group_by_key().count(store="counts")
    thread, consumer = scripted_thread(monkeypatch, builder.build(), directory)
    task = GroupTask("0", 0)
    assign(thread, consumer, [], ["in"], standby=[task])
    thread._run_once()
    restore_consumer(thread).batches = [[polled("app-counts-changelog", 0, "\0" * 8)]]
    thread._run_once()
    assert thread.task_metrics()["0_0"]["update-total"] == 1
    assign(thread, consumer, [task], ["in"])
    (active,) = thread.tasks.tasks.values()
    assert active.task.stores["counts"].committed_offset == 1
    thread.stop()
    thread._run()


class _FailsToClose(Processor[str, str]):
    """A processor with a bug in `close`."""

    def process(self, record: Record[str, str]) -> None:
        """Do nothing."""

    def close(self) -> None:
        raise ValueError("a bug of close")


def test_a_thread_ends_although_its_processors_fail_to_close(
    monkeypatch: pytest.MonkeyPatch, directory: StateDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    builder = StreamsBuilder()
    table = builder.table("in", key_serde=STRING, value_serde=STRING, store="last")
    table.to_stream().process(_FailsToClose)
    thread, consumer = scripted_thread(monkeypatch, builder.build(), directory)
    assign(thread, consumer, [GroupTask("0", 0), GroupTask("0", 1)], ["in"])
    thread._run_once()
    thread.stop()
    thread._run()
    assert (thread.has_ended, consumer.is_closed, thread.tasks.tasks) == (True, True, {})
    assert "a bug of close" in caplog.text
    for task in ("0_0", "0_1"):
        directory.lock(task)


def test_a_member_without_tasks_runs_once_the_group_has_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StreamsBuilder()
    builder.stream("in", key_serde=STRING, value_serde=STRING).to("out", key_serde=STRING, value_serde=STRING)
    thread, _ = scripted_thread(monkeypatch, builder.build())
    membership = Mock(is_ready=True, target=GroupTasks(), owned=GroupTasks())
    missing = Status(status_code=3, status_detail="Internal topics are missing: app-requests-repartition")
    thread._driver = Mock(member=Mock(membership=membership), statuses=(missing,), endpoints=())
    thread._run_once()
    assert not thread.is_running
    thread._driver.statuses = ()
    thread._run_once()
    assert thread.is_running
