from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.client.membership.streams_events import GroupTask
from pybroker.streams import STRING, StreamsBuilder
from pybroker.streams.state.directory import StateDirectory
from pybroker.streams.topology.topology import Topology
from tests.support.stream_threads import assign, polled, scripted_thread

POLL_S = 0.07


def _stored(seen: list[str]) -> Topology:
    """Return a topology with a persistent store without a changelog."""
    builder = StreamsBuilder()
    table = builder.stream("in", key_serde=STRING, value_serde=STRING).group_by_key()
    table.reduce(lambda _old, new: new, store="last", logging=False).to_stream().foreach(
        lambda _key, value: seen.append(value)
    )
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
