"""Few descriptors, much load: the broker lives, nothing acknowledged is dead, all works again when the load goes."""

from __future__ import annotations

import os
import re
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess, NotStartedError
from tests.support.wire import Wire, fetch, fetched, produce, produced, request

pytestmark = pytest.mark.process

NONE, UNKNOWN, NOT_LEADER, STORAGE_ERROR = 0, 3, 6, 56
RETRIABLE = {NOT_LEADER, STORAGE_ERROR}
PATIENCE_SECONDS = 60
# The index of such a segment is full at once: every append begins another one.
ROLLS = {"segment_index_bytes": "12"}


def with_limit(soft: int, hard: int | None = None) -> Callable[[], None]:
    """What a process does before it becomes the broker."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft if hard is None else hard))


@contextmanager
def broker_with(tmp_path: Path, limit: int, **overrides: str) -> Iterator[BrokerProcess]:
    """A running broker that may have so many descriptors."""
    overrides = {key.replace("_", "."): value for key, value in overrides.items()}
    # The system drops what comes faster than it is accepted, and clients ask again seconds later.
    overrides["socket.listen.backlog.size"] = "4096"
    with BrokerProcess(tmp_path / "data", overrides, before_exec=with_limit(limit)) as broker:
        yield broker


def allowed_connections(broker: BrokerProcess) -> int:
    """How many connections the broker said that it takes."""
    found = re.search(r"RLIMIT_NOFILE is \d+: at most (\d+) connections", broker.log)
    assert found is not None, broker.log
    return int(found[1])


def open_descriptors(broker: BrokerProcess) -> int:
    """How many descriptors the broker has open."""
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


def fill_with_connections(broker: BrokerProcess, stack: ExitStack, beyond: int = 20) -> None:
    """Open idle connections, more than the broker takes; the last ones wait in the system's queue."""
    host, port = broker.bootstrap_servers.split(":")
    for _ in range(allowed_connections(broker) + beyond):
        idle = stack.enter_context(socket.socket())
        idle.setblocking(False)
        idle.connect_ex((host, int(port)))
    line = "connections are open"
    wait_until(lambda: line in broker.log, within=PATIENCE_SECONDS, what="a line about connections")


def create(wire: Wire, topic: str, partitions: int, **configs: str) -> Any:
    """Create a topic; the answer's part."""
    entries = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    wanted = {"name": topic, "num_partitions": partitions, "replication_factor": 1, "configs": entries}
    (response,) = wire.call("CreateTopics", 7, topics=[wanted], timeout_ms=60_000).topics
    return response


def logs_of(broker: BrokerProcess, topic: str) -> int:
    """Count the directories of a topic's partitions."""
    return sum(1 for _ in broker.directory.glob(f"{topic}-*"))


def append(wire: Wire, topic: str, partition: int, value: bytes) -> int:
    """Produce until it is acknowledged, as clients do it; the offset."""

    def once() -> list[int]:
        response = produced(wire.query(produce(topic, batch_of(value), partition=partition)))
        assert response.error_code in {NONE, *RETRIABLE}, response
        return [response.base_offset] if response.error_code == NONE else []

    return wait_until(once, within=PATIENCE_SECONDS, what=f"an append to {topic}-{partition}")[0]


def read(wire: Wire, topic: str, partition: int, offset: int) -> Any:
    """Fetch until it is answered, as clients do it; the answer's part."""

    def once() -> list[Any]:
        found = fetched(wire.query(fetch(topic, offset, partitions=[partition], partition_max_bytes=1)))
        assert found.error_code in {NONE, *RETRIABLE}, found
        return [found] if found.error_code == NONE else []

    return wait_until(once, within=PATIENCE_SECONDS, what=f"a read of {topic}-{partition} at {offset}")[0]


def assert_alive(wire: Wire, topic: str, partitions: int, offsets: int = 1) -> None:
    """Every partition has what was acknowledged, and can be written to."""
    for partition in range(partitions):
        found = read(wire, topic, partition, offsets - 1)
        assert (found.high_watermark, bool(found.records)) == (offsets, True), (partition, found)
        assert append(wire, topic, partition, b"again") == offsets


# Each load works by one connection that is there before it, beside as many idle ones as the broker takes.


def many_creations(broker: BrokerProcess, wire: Wire, limit: int) -> None:
    """More partitions than descriptors, each written to."""
    assert create(wire, "many", limit).error_code == NONE
    for partition in range(limit):
        assert append(wire, "many", partition, b"x") == 0


def many_rolls(broker: BrokerProcess, wire: Wire, limit: int) -> None:
    """A log with more segments than there are descriptors, all of them read again."""
    assert create(wire, "rolled", 1, **ROLLS).error_code == NONE
    for offset in range(limit):
        assert append(wire, "rolled", 0, b"x") == offset
    assert len(list((broker.directory / "rolled-0").glob("*.log"))) == limit
    for offset in range(limit):
        assert read(wire, "rolled", 0, offset).records


def start_with_many(broker: BrokerProcess, wire: Wire, limit: int) -> None:
    """A recovery of more logs with records than there are descriptors."""
    many_creations(broker, wire, limit)
    broker.kill()
    broker.start()


def nothing_else(broker: BrokerProcess, wire: Wire, limit: int) -> None:
    """The connections alone."""


LOADS = {"connections": nothing_else, "creations": many_creations, "rolls": many_rolls, "start": start_with_many}


@pytest.mark.parametrize(
    ("limit", "load"),
    [
        *((256, load) for load in LOADS),
        *((1024, load) for load in LOADS),
        (4096, "connections"),
    ],
)
def test_few_descriptors_under_load(tmp_path: Path, limit: int, load: str) -> None:
    with broker_with(tmp_path, limit) as broker, ExitStack() as idle:
        with Wire(broker.bootstrap_servers) as wire:
            assert create(wire, "before", 1).error_code == NONE
            assert append(wire, "before", 0, b"x") == 0
            fill_with_connections(broker, idle)
            LOADS[load](broker, wire, limit)
        idle.close()
        if load != "start":
            assert broker.log.count("connections are open") == 1, "one line, not one for each"
        with Wire(broker.bootstrap_servers) as wire:
            assert_alive(wire, "before", 1)
            if load in ("creations", "start"):
                assert_alive(wire, "many", limit)
            assert create(wire, "after", 3).error_code == NONE
            for partition in range(3):
                assert append(wire, "after", partition, b"x") == 0
        assert open_descriptors(broker) <= limit
        assert broker.terminate() == 0
        assert "did not end cleanly" not in broker.log
        assert "failed:" not in broker.log
        assert "Traceback" not in broker.log


@contextmanager
def famine(broker: BrokerProcess) -> Iterator[None]:
    """The broker can open nothing more."""
    soft, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    # Descriptors are given from the lowest on: with one open above the limit, none below it is free but those counted.
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_without_any_descriptor_everything_is_refused_for_now_and_nothing_is_lost(tmp_path: Path) -> None:
    with broker_with(tmp_path, 1024) as broker, Wire(broker.bootstrap_servers) as wire, ExitStack() as late:
        assert create(wire, "small", 2, **ROLLS).error_code == NONE
        value = b"x"
        assert append(wire, "small", 0, value) == 0
        with famine(broker):
            refused = produced(wire.query(produce("small", batch_of(value))))
            assert refused.error_code == STORAGE_ERROR, "its segment is full, and another one cannot be made"
            assert "Too many open files" in refused.error_message
            for topic in ("one", "two"):
                failed = create(wire, topic, 10)
                assert failed.error_code == STORAGE_ERROR
                assert f"topic {topic} was created, but the log of {topic}-" in failed.error_message
                assert "RLIMIT_NOFILE, hard limit 1024" in failed.error_message
            waiting = late.enter_context(Wire(broker.bootstrap_servers))
            correlation_id = waiting.send(fetch("small"))
            wait_until(
                lambda: "Out of file descriptors or memory: " in broker.log,
                within=60,
                what="a line that names the limit",
            )
        assert fetched(waiting.receive(fetch("small"), correlation_id)).error_code == NONE
        assert append(wire, "small", 0, value) == 1
        assert append(wire, "small", 1, value) == 0
        for topic in ("one", "two"):
            for partition in range(10):
                assert append(wire, topic, partition, b"x") == 0
        assert broker.log.count("Out of file descriptors or memory: ") == 1
        assert broker.terminate() == 0
        assert "failed:" not in broker.log
        broker.start()
        with Wire(broker.bootstrap_servers) as again:
            assert_alive(again, "small", 1, 2)
            assert_alive(again, "one", 10)


def test_a_topic_deleted_without_descriptors_can_be_made_anew(tmp_path: Path) -> None:
    with broker_with(tmp_path, 1024) as broker, Wire(broker.bootstrap_servers) as wire:
        assert create(wire, "gone", 2).error_code == NONE
        assert append(wire, "gone", 0, b"x") == 0
        # The handler is read with its first request, if not before: that takes a descriptor.
        assert wire.call("DeleteTopics", 4, topic_names=["none"], timeout_ms=10_000).responses[0].error_code == UNKNOWN
        with famine(broker):
            deletion = request("DeleteTopics", 4, topic_names=["gone"], timeout_ms=10_000)
            correlation_id = wire.send(deletion)
            line = "a checkpoint is delayed"
            wait_until(lambda: line in broker.log, within=60, what="a checkpoint that cannot be written")
        (deleted,) = wire.receive(deletion, correlation_id).responses
        assert deleted.error_code == NONE
        assert create(wire, "gone", 2).error_code == NONE
        assert append(wire, "gone", 0, b"x") == 0, "it is empty"


def test_the_soft_limit_is_raised_to_the_hard_one_and_the_division_is_said(tmp_path: Path) -> None:
    settings = {"max.connections": "2000"}
    with BrokerProcess(tmp_path / "data", settings, before_exec=with_limit(256, 1024)) as broker:
        assert resource.prlimit(broker.pid, resource.RLIMIT_NOFILE) == (1024, 1024)
        reported = next(line for line in broker.log.splitlines() if "RLIMIT_NOFILE is" in line)
        assert " WARN " in reported
        assert "RLIMIT_NOFILE is 1024: at most 448 connections, about 448 open log files" in reported
        assert "max.connections=2000 cannot be reached" in reported


def test_a_limit_that_is_too_low_for_a_broker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotStartedError) as refused:
        BrokerProcess(tmp_path / "data", before_exec=with_limit(100)).start()
    assert "RLIMIT_NOFILE is 100 (hard limit 100): a broker needs at least 128" in refused.value.log
    assert "Traceback" not in refused.value.log


def test_a_partition_holds_a_descriptor_only_after_it_was_written_to(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, Wire(broker.bootstrap_servers) as wire:
        assert create(wire, "first", 1).error_code == NONE
        before = open_descriptors(broker)
        assert create(wire, "many", 500).error_code == NONE
        # So many are answered before their logs are made, and to make one takes a descriptor for a moment.
        made = partial(logs_of, broker, "many")
        wait_until(lambda: made() == 500, within=PATIENCE_SECONDS, what=lambda: f"500 logs, not {made()}")
        wait_until(lambda: open_descriptors(broker) == before, within=PATIENCE_SECONDS, what="no log to hold one")
        for partition in range(100):
            assert append(wire, "many", partition, b"x") == 0
        assert open_descriptors(broker) == before + 100
        wire.socket.close()
        for stop in (broker.terminate, broker.kill):
            stop()
            broker.start()
            assert open_descriptors(broker) <= before, "after a clean stop and after a recovery"
