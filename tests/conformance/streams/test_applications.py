"""Applications against brokers: states, bad input, dead letters, queries, global tables and standby tasks."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pybroker.client import Admin, BrokerError, Consumer, Producer, TopicPartition
from pybroker.client.administration.topics import GROUP, SET, ConfigChange
from pybroker.streams import (
    INT64,
    STRING,
    AsyncKafkaStreams,
    DirectoryLockedError,
    InvalidStateStoreError,
    JoinWindows,
    KafkaStreams,
    MissingSourceTopicError,
    RestoreProgress,
    Serde,
    State,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    TopologyError,
    UncaughtResponse,
    time_windowed,
)
from pybroker.streams.errors import TaskCorruptedError
from pybroker.streams.topology.topology import Topology
from tests.conformance.conftest import Server, serving
from tests.support.conditions import wait_until
from tests.support.streams_application import create_topics

pytestmark = pytest.mark.xdist_group("stream applications")

BROKER = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "100",
    "group.streams.assignment.interval.ms": "0",
}
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def brokers() -> Iterator[Server]:
    with serving(BROKER) as server:
        yield server


@pytest.fixture
def app_id() -> str:
    return f"app{next(NUMBERS)}"


Started = Callable[..., KafkaStreams]


@pytest.fixture
def started(brokers: Server, app_id: str, tmp_path: Path) -> Iterator[Started]:
    """A factory of applications that are closed at the end."""
    running: list[KafkaStreams] = []

    def start(topology: Topology, **settings: Any) -> KafkaStreams:
        whole = {
            "application.id": app_id,
            "bootstrap.servers": brokers.bootstrap_servers,
            "commit.interval.ms": 100,
            "statestore.cache.max.bytes": 0,
            "state.dir": tmp_path / f"instance-{len(running)}",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        app = KafkaStreams(topology, whole)
        running.append(app)
        return app

    yield start
    for app in running:
        assert app.close(60)


def _send(servers: str, topic: str, *pairs: tuple[str | None, str | None], **options: Any) -> None:
    with Producer(servers) as producer:
        for key, value in pairs:
            producer.send(
                topic, None if value is None else value.encode(), None if key is None else key.encode(), **options
            )


def _read(servers: str, topic: str, count: int) -> list[Any]:
    """Return the first records of partition 0 of a topic."""
    with Consumer(servers, {"auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records: list[Any] = []

        def has_enough() -> bool:
            records.extend(consumer.poll(0.2))
            return len(records) >= count

        wait_until(has_enough, within=60, what=f"{count} records of {topic}")
        return records


def _upper(app: str, fail_at: str | None = None) -> Topology:
    def upper(value: str) -> str:
        if value == fail_at:
            raise ValueError(f"no {value}")
        return value.upper()

    builder = StreamsBuilder()
    stream = builder.stream(f"{app}.in", key_serde=STRING, value_serde=STRING)
    stream.map_values(upper).to(f"{app}.out", key_serde=STRING, value_serde=STRING)
    return builder.build()


def test_an_application_reports_its_states(brokers: Server, app_id: str, started: Started) -> None:
    create_topics(brokers.bootstrap_servers, [f"{app_id}.in", f"{app_id}.out"])
    app, states = started(_upper(app_id)), []
    app.set_state_listener(lambda new, _old: states.append(new))
    app.start()
    app.wait_until_running()
    _send(brokers.bootstrap_servers, f"{app_id}.in", ("a", "one"))
    assert [r.value for r in _read(brokers.bootstrap_servers, f"{app_id}.out", 1)] == [b"ONE"]
    with pytest.raises(StreamsError, match="can be set in state CREATED only, and the state is RUNNING"):
        app.set_state_listener(lambda _new, _old: None)
    with pytest.raises(StreamsError, match="state is RUNNING"):
        app.start()
    assert app.close(60)
    assert states[:2] == [State.REBALANCING, State.RUNNING]
    assert states[-2:] == [State.PENDING_SHUTDOWN, State.NOT_RUNNING]


def test_an_application_runs_with_threads_that_have_no_task(brokers: Server, app_id: str, started: Started) -> None:
    create_topics(brokers.bootstrap_servers, [f"{app_id}.in", f"{app_id}.out"])
    app = started(_upper(app_id), num_stream_threads=3)
    app.start()
    app.wait_until_running()

    def active_tasks() -> list[float]:
        return sorted(metrics["active-tasks"] for metrics in app.metrics().values())

    wait_until(
        lambda: app.state is State.RUNNING and active_tasks() == [0, 0, 1], within=60, what="one thread has the task"
    )


def test_an_application_that_is_never_started_closes(app_id: str, started: Started) -> None:
    app = started(_upper(app_id))
    assert app.close()
    assert app.state is State.NOT_RUNNING


def test_a_missing_source_topic_is_named(app_id: str, started: Started) -> None:
    app = started(_upper(app_id), task_timeout_ms=0)
    app.start()
    with pytest.raises(MissingSourceTopicError, match=rf"{app_id}\.in.*Create the topics"):
        app.wait(60)
    assert app.state is State.ERROR


def test_an_application_waits_for_its_source_topic(brokers: Server, app_id: str, started: Started) -> None:
    app = started(_upper(app_id))
    app.start()
    create_topics(brokers.bootstrap_servers, [f"{app_id}.in", f"{app_id}.out"])
    app.wait_until_running()


def test_topics_of_a_join_need_equal_numbers_of_partitions(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.left"], 2)
    create_topics(servers, [f"{app_id}.right"], 3)
    builder = StreamsBuilder()
    left, right = (
        builder.stream(f"{app_id}.{side}", key_serde=STRING, value_serde=STRING) for side in ("left", "right")
    )
    windows = JoinWindows.of_time_difference_with_no_grace(1_000)
    joined = left.join(
        right, lambda a, b: a + b, windows, key_serde=STRING, value_serde=STRING, other_value_serde=STRING
    )
    joined.to("out", key_serde=STRING, value_serde=STRING)
    app = started(builder.build())
    app.start()
    with pytest.raises(TopologyError, match=rf"{app_id}\.left.*{app_id}\.right|{app_id}\.right.*{app_id}\.left"):
        app.wait(60)


def test_a_record_that_fails_stops_the_application_and_is_named(brokers: Server, app_id: str, started: Started) -> None:
    create_topics(brokers.bootstrap_servers, [f"{app_id}.in", f"{app_id}.out"])
    _send(brokers.bootstrap_servers, f"{app_id}.in", ("a", "good"), ("b", "bad"))
    app = started(_upper(app_id, fail_at="bad"))
    app.start()
    with pytest.raises(StreamsError, match=rf"failed at record {app_id}\.in-0 offset 1 .* no bad"):
        app.wait(60)


def test_records_that_fail_go_to_the_dead_letter_topic(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.{name}" for name in ("in", "out", "dead")])
    app = started(
        _upper(app_id, fail_at="bad"),
        **{
            "processing.exception.handler": "continue",
            "deserialization.exception.handler": "continue",
            "errors.dead.letter.queue.topic.name": f"{app_id}.dead",
        },
    )
    app.start()
    _send(servers, f"{app_id}.in", ("a", "good"), ("b", "bad"))
    with Producer(servers) as producer:
        producer.send(f"{app_id}.in", b"\xff", b"c")
    _send(servers, f"{app_id}.in", ("d", "fine"))
    assert [r.value for r in _read(servers, f"{app_id}.out", 2)] == [b"GOOD", b"FINE"]
    failed, unreadable = sorted(_read(servers, f"{app_id}.dead", 2), key=lambda record: record.key)
    assert (failed.key, failed.value) == (b"b", b"bad")
    headers = dict(failed.headers)
    assert headers["__streams.errors.exception"] == b"builtins.ValueError"
    assert headers["__streams.errors.message"] == b"no bad"
    assert (headers["__streams.errors.topic"], headers["__streams.errors.offset"]) == (f"{app_id}.in".encode(), b"1")
    assert (unreadable.key, unreadable.value) == (b"c", b"\xff")


def test_a_thread_that_fails_is_replaced(brokers: Server, app_id: str, started: Started) -> None:
    servers, failures = brokers.bootstrap_servers, itertools.count(1)
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"])

    def fails_once(value: str) -> str:
        if value == "bad" and next(failures) == 1:
            raise ValueError("the first time")
        return value

    builder = StreamsBuilder()
    stream = builder.stream(f"{app_id}.in", key_serde=STRING, value_serde=STRING)
    stream.map_values(fails_once).to(f"{app_id}.out", key_serde=STRING, value_serde=STRING)
    app = started(builder.build())
    app.set_uncaught_exception_handler(lambda _error: UncaughtResponse.REPLACE_THREAD)
    app.start()
    _send(servers, f"{app_id}.in", ("a", "bad"))
    assert [r.value for r in _read(servers, f"{app_id}.out", 1)] == [b"bad"]


def test_a_failure_shuts_down_all_instances(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"], 2)
    apps = [started(_upper(app_id, fail_at="bad")) for _ in range(2)]
    for app in apps:
        app.set_uncaught_exception_handler(lambda _error: UncaughtResponse.SHUTDOWN_APPLICATION)
        app.start()
        app.wait_until_running()
    _send(servers, f"{app_id}.in", ("a", "bad"))
    ended = (State.NOT_RUNNING, State.ERROR)
    wait_until(lambda: all(app.state in ended for app in apps), within=60, what="both instances have stopped")
    assert {app.state for app in apps} == set(ended)


def _counts(app: str) -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream(f"{app}.in", key_serde=STRING, value_serde=STRING)
    stream.group_by_key().count(store="counts").to_stream().to(f"{app}.out", key_serde=STRING, value_serde=INT64)
    return builder.build()


def test_stores_are_queried_and_restored(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"])
    _send(servers, f"{app_id}.in", ("a", "1"), ("b", "2"), ("a", "3"), timestamp_ms=1_000)
    app = started(_counts(app_id))
    app.start()
    counts = app.store("counts")
    wait_until(lambda: app.state is State.RUNNING and counts.get("a") == 2, within=60, what="a is counted")
    assert (counts.get("b"), counts.get("c")) == (1, None)
    assert counts.all() == [("a", 2), ("b", 1)]
    assert counts.range("b", "z") == [("b", 1)]
    assert counts.approximate_num_entries == 2
    stamped = app.store("counts", timestamped=True).get("a")
    assert (stamped.value, stamped.timestamp) == (2, 1_000)
    with pytest.raises(InvalidStateStoreError, match="unknown state store 'count': expected one of counts"):
        app.store("count")
    with pytest.raises(InvalidStateStoreError, match="has no query 'put'"):
        counts.put("a", 1)
    assert app.close(60)
    with pytest.raises(InvalidStateStoreError, match="cannot be read: the application is NOT_RUNNING"):
        counts.get("a")

    again = started(_counts(app_id))
    progress: list[RestoreProgress] = []
    again.set_restore_listener(progress.append)
    again.start()
    again.wait_until_running()
    assert again.store("counts").all() == [("a", 2), ("b", 1)]
    last = progress[-1]
    assert (last.store, last.restored, last.finished) == ("counts", 3, True)


def test_threads_tasks_and_stores_have_metrics(brokers: Server, app_id: str, started: Started, tmp_path: Path) -> None:
    _count_twice(brokers.bootstrap_servers, app_id, started, tmp_path)
    app = started(_counts(app_id))  # In another directory, so that it restores.
    app.start()
    app.wait_until_running()
    _send(brokers.bootstrap_servers, f"{app_id}.in", ("b", "1"))
    wait_until(lambda: app.store("counts").get("b") == 1, within=60, what="b is counted")
    wait_until(lambda: _total(app, "commit-total") == 1, within=60, what="the task commits")
    (thread,) = app.metrics().values()
    totals = ("process-total", "task-created-total", "task-closed-total", "poll-records-max")
    assert [thread[name] for name in totals] == [1, 1, 0, 1]
    assert 0 < thread["poll-records-avg"] <= 1 <= thread["poll-total"]
    assert 0 < thread["commit-latency-avg"] == thread["commit-latency-max"]
    assert app.task_metrics() == {
        "0_0": {
            "process-total": 1,
            "dropped-records-total": 0,
            "restore-total": 2,
            "restore-remaining-records-total": 0,
            "update-total": 0,
        }
    }
    properties = app.store_metrics()["0_0"]["counts"]
    assert properties["num-entries-active-mem-table"] > 0
    assert properties["block-cache-capacity"] == 50 << 20  # `RocksDBStore.BLOCK_CACHE_SIZE` of Kafka.


def _restored(app: KafkaStreams) -> list[RestoreProgress]:
    """Start an application, and return how far each store was restored."""
    progress: list[RestoreProgress] = []
    app.set_restore_listener(progress.append)
    app.start()
    app.wait_until_running()
    return [one for one in progress if one.finished]


def _count_twice(servers: str, app_id: str, started: Started, directory: Path) -> None:
    """Run an application over two records, with its state in a directory."""
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"])
    _send(servers, f"{app_id}.in", ("a", "1"), ("a", "2"))
    app = started(_counts(app_id), state_dir=directory)
    app.start()
    wait_until(lambda: app.state is State.RUNNING and app.store("counts").get("a") == 2, within=60, what="a is counted")
    with pytest.raises(StreamsError, match="cannot be deleted in state RUNNING"):
        app.cleanup()
    assert app.close(60)


def test_a_restart_continues_with_its_directory(brokers: Server, app_id: str, started: Started, tmp_path: Path) -> None:
    _count_twice(brokers.bootstrap_servers, app_id, started, tmp_path)
    again = started(_counts(app_id), state_dir=tmp_path)
    (counts,) = _restored(again)
    assert (counts.start_offset, counts.end_offset, counts.restored) == (2, 2, 0)
    assert again.store("counts").all() == [("a", 2)]
    with pytest.raises(DirectoryLockedError, match="another instance or thread"):
        started(_counts(app_id), state_dir=tmp_path).start()
    assert again.close(60)
    again.cleanup()
    clean = started(_counts(app_id), state_dir=tmp_path)
    assert [one.restored for one in _restored(clean)] == [2]


def test_damaged_state_is_deleted_and_restored(brokers: Server, app_id: str, started: Started, tmp_path: Path) -> None:
    _count_twice(brokers.bootstrap_servers, app_id, started, tmp_path)
    (current,) = tmp_path.glob("*/0_0/rocksdb/counts/CURRENT")
    current.write_bytes(b"rubbish")
    again = started(_counts(app_id), state_dir=tmp_path)
    assert [one.restored for one in _restored(again)] == [2]
    assert again.store("counts").all() == [("a", 2)]


def test_a_changed_topology_does_not_read_an_old_directory(
    brokers: Server, app_id: str, started: Started, tmp_path: Path
) -> None:
    _count_twice(brokers.bootstrap_servers, app_id, started, tmp_path)
    builder = StreamsBuilder()
    stream = builder.stream(f"{app_id}.in", key_serde=STRING, value_serde=STRING)
    windows = TimeWindows.of_size_with_no_grace(1_000)
    stream.group_by_key().windowed_by(windows).count(store="counts").to_stream(lambda window, _: str(window)).to(
        f"{app_id}.out", key_serde=STRING, value_serde=INT64
    )
    app = started(builder.build(), state_dir=tmp_path)
    app.start()
    with pytest.raises((StreamsError, BrokerError), match=r"counts|Topology updates are not supported"):
        app.wait(60)
    assert app.state is State.ERROR


def test_a_standby_task_follows_and_takes_over(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"])
    with Admin(servers) as admin:
        admin.alter_configs(app_id, [ConfigChange("streams.num.standby.replicas", "1", SET)], GROUP)
    first, second = started(_counts(app_id)), started(_counts(app_id))
    first.start()
    second.start()

    def tasks(app: KafkaStreams, kind: str) -> float:
        return sum(metrics[kind] for metrics in app.metrics().values())

    def are_paired() -> bool:
        roles = {(tasks(app, "active-tasks"), tasks(app, "standby-tasks")) for app in (first, second)}
        return roles == {(1.0, 0.0), (0.0, 1.0)}

    wait_until(are_paired, within=60, what="one instance has the task, the other its standby")
    _send(servers, f"{app_id}.in", ("a", "1"), ("a", "2"))
    active, standby = (first, second) if tasks(first, "active-tasks") else (second, first)
    wait_until(lambda: standby.store("counts").get("a") == 2, within=60, what="the standby task follows")
    assert active.close(60)
    wait_until(lambda: tasks(standby, "active-tasks") == 1, within=60, what="the other instance takes over")
    _send(servers, f"{app_id}.in", ("a", "3"))
    wait_until(lambda: standby.store("counts").get("a") == 3, within=60, what="it continues to count")


def test_a_global_table_is_joined_and_queried(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.names"], 2)
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"])
    _send(servers, f"{app_id}.names", ("1", "Ada"), ("2", "Grace"))
    builder = StreamsBuilder()
    names = builder.global_table(f"{app_id}.names", key_serde=STRING, value_serde=STRING, store="names")
    stream = builder.stream(f"{app_id}.in", key_serde=STRING, value_serde=STRING)
    joined = stream.join(names, lambda _key, value: value, lambda value, name: f"{value}-{name}")
    joined.to(f"{app_id}.out", key_serde=STRING, value_serde=STRING)
    app = started(builder.build())
    app.start()
    app.wait_until_running()
    _send(servers, f"{app_id}.in", ("x", "2"), ("y", "1"))
    assert [r.value for r in _read(servers, f"{app_id}.out", 2)] == [b"2-Grace", b"1-Ada"]
    _send(servers, f"{app_id}.names", ("3", "Edsger"))
    wait_until(lambda: app.store("names").get("3") == "Edsger", within=60, what="the table follows its topic")
    assert sorted(app.store("names").all()) == [("1", "Ada"), ("2", "Grace"), ("3", "Edsger")]


def test_windows_of_a_key_are_in_the_partition_of_the_key(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"], 5)
    builder = StreamsBuilder()
    stream = builder.stream(f"{app_id}.in", key_serde=STRING, value_serde=STRING)
    windows = TimeWindows.of_size_with_no_grace(1_000)
    counts = stream.group_by_key().windowed_by(windows).count().to_stream()
    counts.to(f"{app_id}.out", key_serde=time_windowed(STRING), value_serde=INT64)
    app = started(builder.build())
    app.start()
    keys = [f"key-{number}" for number in range(20)]
    for second in (1, 2):
        _send(servers, f"{app_id}.in", *((key, "x") for key in keys), timestamp_ms=second * 1_000)
    placed: dict[str, set[tuple[str, int]]] = {"in": set(), "out": set()}

    def read(name: str, key_of: Callable[[bytes], bytes], count: int) -> None:
        with Consumer(servers, {"auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([TopicPartition(f"{app_id}.{name}", index) for index in range(5)])
            seen = 0

            def has_all() -> bool:
                nonlocal seen
                for record in consumer.poll(0.2):
                    seen += 1
                    assert record.key is not None
                    placed[name].add((key_of(record.key).decode(), record.partition))
                return seen >= count

            wait_until(has_all, within=60, what=f"{count} records of {name}")

    read("in", lambda key: key, 40)
    read("out", lambda key: key[:-8], 40)
    assert placed["in"] == placed["out"]
    assert len({partition for _, partition in placed["out"]}) > 1


def test_a_source_has_an_offset_reset_of_its_own(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.{name}" for name in ("old", "new", "out")])
    _send(servers, f"{app_id}.old", ("a", "old"))
    _send(servers, f"{app_id}.new", ("a", "skipped"))
    builder = StreamsBuilder()
    for name, reset in (("old", None), ("new", "latest")):
        stream = builder.stream(f"{app_id}.{name}", key_serde=STRING, value_serde=STRING, offset_reset=reset)
        stream.to(f"{app_id}.out", key_serde=STRING, value_serde=STRING)
    app = started(builder.build())
    app.start()
    app.wait_until_running()
    assert [r.value for r in _read(servers, f"{app_id}.out", 1)] == [b"old"]
    _send(servers, f"{app_id}.new", ("a", "new"))
    assert [r.value for r in _read(servers, f"{app_id}.out", 2)] == [b"old", b"new"]


@pytest.mark.parametrize("whole", [True, False], ids=["of the application", "of a source"])
def test_a_task_that_is_corrupted_before_its_first_commit_skips_nothing(
    brokers: Server, app_id: str, started: Started, whole: bool
) -> None:
    servers, failures = brokers.bootstrap_servers, itertools.count(1)
    create_topics(servers, [f"{app_id}.{name}" for name in ("in", "out")])
    _send(servers, f"{app_id}.in", ("a", "before the application"))

    def fails_once(value: str) -> str:
        if next(failures) == 1:
            raise TaskCorruptedError("the first record fails once", "0_0")
        return value

    builder = StreamsBuilder()
    reset = None if whole else "latest"
    stream = builder.stream(f"{app_id}.in", key_serde=STRING, value_serde=STRING, offset_reset=reset)
    stream.map_values(fails_once).to(f"{app_id}.out", key_serde=STRING, value_serde=STRING)
    settings = {"auto.offset.reset": "latest"} if whole else {}
    app = started(builder.build(), processing_guarantee="exactly_once_v2", **settings)
    app.start()
    app.wait_until_running()
    _send(servers, f"{app_id}.in", ("a", "one"), ("a", "two"))
    assert [r.value for r in _read(servers, f"{app_id}.out", 2)] == [b"one", b"two"]


def test_a_paused_application_processes_nothing(brokers: Server, app_id: str, started: Started) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"])
    app = started(_upper(app_id))
    app.pause()
    app.start()
    app.wait_until_running()
    _send(servers, f"{app_id}.in", ("a", "one"))
    wait_until(lambda: _total(app, "poll-records-max") == 1, within=60, what="the record is polled")
    assert (app.is_paused, _total(app, "process-total")) == (True, 0)
    app.resume()
    assert [r.value for r in _read(servers, f"{app_id}.out", 1)] == [b"ONE"]
    assert not app.is_paused


def _total(app: KafkaStreams, name: str) -> float:
    return sum(metrics[name] for metrics in app.metrics().values())


def test_threads_are_added_and_removed_while_records_flow(brokers: Server, app_id: str, started: Started) -> None:
    servers, keys = brokers.bootstrap_servers, [f"key-{number}" for number in range(10)]
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"], 4)
    app = started(_counts(app_id), processing_guarantee="exactly_once_v2", num_stream_threads=2, client_id="app")
    assert app.add_stream_thread() is None
    assert app.remove_stream_thread() is None
    app.start()
    counts, sent = app.store("counts"), 0

    def send_more() -> None:
        nonlocal sent
        _send(servers, f"{app_id}.in", *((key, "x") for key in keys * 20))
        sent += 20

    def all_counted() -> bool:
        return app.state is State.RUNNING and sorted(counts.all()) == [(key, sent) for key in keys]

    send_more()
    app.wait_until_running()
    assert app.add_stream_thread() == "app-StreamThread-3"
    send_more()
    assert app.remove_stream_thread() == "app-StreamThread-1"
    send_more()
    assert app.remove_stream_thread(60) == "app-StreamThread-2"
    assert app.add_stream_thread() == "app-StreamThread-1"
    send_more()
    wait_until(all_counted, within=60, what=lambda: f"{sent} of each of {keys} in {counts.all()}")
    for name in ("app-StreamThread-3", "app-StreamThread-1"):
        assert app.remove_stream_thread() == name
    assert app.remove_stream_thread() is None
    assert app.state in (State.RUNNING, State.REBALANCING)
    assert app.add_stream_thread() == "app-StreamThread-1"
    send_more()
    wait_until(all_counted, within=60, what=lambda: f"{sent} of each of {keys} in {counts.all()}")


def test_a_listener_closes_the_application(brokers: Server, app_id: str, started: Started) -> None:
    create_topics(brokers.bootstrap_servers, [f"{app_id}.in", f"{app_id}.out"])
    for at in (State.REBALANCING, State.RUNNING):
        app = started(_upper(app_id), num_stream_threads=3)
        app.set_state_listener(lambda new, _old: new is at and app.close(60))  # noqa: B023 - awaited in the loop
        app.start()
        assert app.wait(60)
        assert app.state is State.NOT_RUNNING
        assert app.failure is None


def _with_names(app: str, deserialize: Callable[[bytes], str]) -> Topology:
    """Return a topology with a global table, whose values the function deserializes."""
    builder = StreamsBuilder()
    serde = Serde("names", str.encode, deserialize)
    builder.global_table(f"{app}.names", key_serde=STRING, value_serde=serde, store="names")
    builder.stream(f"{app}.in", key_serde=STRING, value_serde=STRING).foreach(lambda _key, _value: None)
    return builder.build()


def test_an_application_closes_while_it_fills_a_global_store(brokers: Server, app_id: str, started: Started) -> None:
    create_topics(brokers.bootstrap_servers, [f"{app_id}.names", f"{app_id}.in"])
    _send(brokers.bootstrap_servers, f"{app_id}.names", ("1", "Ada"))
    apps: list[KafkaStreams] = []

    def closing(data: bytes) -> str:
        apps[0].close(60)
        return data.decode()

    apps.append(started(_with_names(app_id, closing)))
    apps[0].start()
    assert apps[0].wait(60)
    assert apps[0].metrics() == {}


def test_the_thread_of_a_global_store_closes_the_application(brokers: Server, app_id: str, started: Started) -> None:
    create_topics(brokers.bootstrap_servers, [f"{app_id}.names", f"{app_id}.in"])
    apps: list[KafkaStreams] = []

    def closing(data: bytes) -> str:
        apps[0].close(60)
        return data.decode()

    apps.append(started(_with_names(app_id, closing)))
    apps[0].start()
    apps[0].wait_until_running()
    _send(brokers.bootstrap_servers, f"{app_id}.names", ("1", "Ada"))
    assert apps[0].wait(60)


def test_an_application_closes_while_it_restores(
    brokers: Server, app_id: str, started: Started, tmp_path: Path
) -> None:
    _count_twice(brokers.bootstrap_servers, app_id, started, tmp_path / "first")
    app = started(_counts(app_id))
    app.set_restore_listener(lambda _progress: app.close(60))
    app.start()
    assert app.wait(60)
    again = started(_counts(app_id))
    again.start()
    again.wait_until_running()
    assert again.store("counts").all() == [("a", 2)]


def test_an_application_runs_beside_an_event_loop(brokers: Server, app_id: str) -> None:
    servers = brokers.bootstrap_servers
    create_topics(servers, [f"{app_id}.in", f"{app_id}.out"])

    async def main() -> list[Any]:
        settings = {"application.id": app_id, "bootstrap.servers": servers, "commit.interval.ms": 100}
        async with AsyncKafkaStreams(_upper(app_id), settings) as app:
            await app.start()
            await app.wait_until_running()
            await asyncio.to_thread(_send, servers, f"{app_id}.in", ("a", "one"))
            records = await asyncio.to_thread(_read, servers, f"{app_id}.out", 1)
        assert app.state is State.NOT_RUNNING
        return records

    assert [record.value for record in asyncio.run(main())] == [b"ONE"]
