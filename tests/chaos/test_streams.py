"""Streams over three brokers under kills and pauses: each input counts once, in its total and in its window.

Instances with `exactly_once_v2` and brokers are killed, paused and restarted while input arrives.
PYBROKER_STREAMS_SECONDS is the time of input (`make streams-soak` takes ten minutes), PYBROKER_CHAOS_SEED
chooses the faults.
"""

from __future__ import annotations

import enum
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pybroker.client import Admin, Consumer, NewTopic, Record, TopicPartition
from pybroker.testing import Cluster
from tests.chaos.feeder import RATE, Feeder
from tests.support.streams_application import await_commits
from tests.support.streams_instance import Instance
from tests.support.streams_program import WINDOW_MS

SECONDS = float(os.environ.get("PYBROKER_STREAMS_SECONDS", "6"))
SEED = int(os.environ.get("PYBROKER_CHAOS_SEED", "7"))
PARTITIONS, INSTANCES = 3, 2
LETTERS = "abcdefg"
INPUT, COUNTED, WINDOWED = TOPICS = ["words", "counted", "windowed"]
_SETTINGS = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "2000",
    "group.streams.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}

pytestmark = [pytest.mark.process, pytest.mark.timeout(SECONDS * 2 + 300), pytest.mark.xdist_group("exactly-once")]


class Fault(enum.Enum):
    """A disturbance of an instance or of a broker."""

    KILL_INSTANCE = "kill -9 of an instance"
    PAUSE_INSTANCE = "SIGSTOP of an instance"
    CLOSE_INSTANCE = "restart of an instance"
    KILL_BROKER = "kill -9 of a broker"
    PAUSE_BROKER = "SIGSTOP of a broker"
    RESTART_BROKER = "restart of a broker"


def schedule(random: Random) -> Iterator[Fault]:
    """Return faults without end. Each one is in every round of all."""
    while True:
        yield from random.sample(list(Fault), len(Fault))


class World:
    """The cluster, the input and the instances."""

    def __init__(self, cluster: Cluster, feeder: Feeder, instances: list[Instance], random: Random) -> None:
        self._cluster = cluster
        self._feeder = feeder
        self._instances = instances
        self._random = random

    def disturb(self, fault: Fault) -> None:
        """Do one fault and end it, while input arrives. The input is the clock."""
        random, feeder = self._random, self._feeder
        feeder.await_input(random.uniform(0.2, 1.5))
        instance, broker = random.choice(self._instances), random.choice(self._cluster.brokers)
        # On both sides of the timeouts of sessions and transactions.
        seconds = random.uniform(0.2, 5.0)
        print(f"{time.strftime('%H:%M:%S')} {fault.value} {self._instances.index(instance)} {broker} {seconds:.1f}")
        if fault is Fault.KILL_INSTANCE:
            instance.kill()
            instance.restart()
        elif fault is Fault.CLOSE_INSTANCE:
            instance.close()
            instance.restart()
        elif fault is Fault.PAUSE_INSTANCE:
            instance.pause()
            feeder.await_input(seconds)
            instance.resume()
        elif fault is Fault.KILL_BROKER:
            self._cluster.kill(broker)
            feeder.await_input(seconds)
            self._cluster.start(broker)
        elif fault is Fault.PAUSE_BROKER:
            with self._cluster.paused(broker):
                feeder.await_input(seconds)
        else:
            self._cluster.restart(broker)
        for one in self._instances:
            assert one.is_alive, f"an instance ended by itself:\n{one.log[-5000:]}"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers, whose logs stay for an analysis."""
    with Cluster(3, directory=tmp_path / "cluster", properties=_SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def instances(cluster: Cluster, tmp_path: Path) -> Iterator[list[Instance]]:
    """Instances of the application; those that still run at the end are killed."""
    settings: dict[str, object] = {
        "application.id": "counting",
        "bootstrap.servers": cluster.bootstrap_servers,
        "topics": TOPICS,
        "processing.guarantee": "exactly_once_v2",
        "statestore.cache.max.bytes": 0,
        "producer.transaction.timeout.ms": 3000,
        "num.stream.threads": 2,
        "replication.factor": 3,
        "topic.min.insync.replicas": 2,
    }
    configs = {"min.insync.replicas": "2"}
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 3, configs) for name in TOPICS])
    started = [Instance(settings, tmp_path / str(number)) for number in range(INSTANCES)]
    yield started
    for instance in started:
        with suppress(ProcessLookupError):
            instance.kill()


def test_each_input_counts_once_in_total_and_in_its_window(cluster: Cluster, instances: list[Instance]) -> None:
    random, base_ms = Random(SEED), round(time.time() * 1000)
    letters = Random(f"letters {SEED}")
    stamps: dict[str, int] = {}

    def record(number: int) -> dict[str, Any]:
        value, timestamp = f"{letters.choice(LETTERS)}{number}", base_ms + number * 1000 // RATE
        stamps[value] = timestamp
        return {"value": value, "partition": number % PARTITIONS, "timestamp": timestamp}

    servers = cluster.bootstrap_servers
    for instance in instances:
        instance.await_state("RUNNING")
    feeder = Feeder(servers, INPUT, record)
    feeder.start()
    world, faults = World(cluster, feeder, instances, random), schedule(random)
    while feeder.sent < RATE * SECONDS:
        world.disturb(next(faults))
    feeder.stop()
    await_commits(servers, "counting", [INPUT], PARTITIONS)
    for instance in instances:
        instance.close()
    assert sorted(str(record.value, "utf-8") for record in read(servers, INPUT) if record.value) == sorted(stamps)
    totals: dict[str, int] = defaultdict(int)
    windows: dict[str, int] = defaultdict(int)
    for value, timestamp in stamps.items():
        totals[value[0]] += 1
        windows[f"{value[0]}@{timestamp // WINDOW_MS * WINDOW_MS}"] += 1
    found = [*violations(read(servers, COUNTED), totals), *violations(read(servers, WINDOWED), windows)]
    assert not found, "\n".join(found)


def violations(updates: list[Record], counts: dict[str, int]) -> Iterator[str]:
    """Yield each update that is not the next count of its key, and each key with another number of updates.

    A counter without a cache sends one update for each input.
    """
    last: dict[str, int] = defaultdict(int)
    for update in updates:
        assert update.key is not None
        assert update.value is not None
        key, count = update.key.decode(), int.from_bytes(update.value, "big")
        if count != last[key] + 1:
            where = f"{update.topic}-{update.partition} offset {update.offset}"
            yield f"{key} has {count} after {last[key]} at {where}, time {update.timestamp_ms}"
        last[key] = count
    yield from (f"{key} counts {last[key]}, expected {counts.get(key)}" for key in last if last[key] != counts.get(key))
    yield from (f"{key} has no count, expected {counts[key]}" for key in counts.keys() - last.keys())


def read(servers: str, topic: str) -> list[Record]:
    """Return all committed records of a topic, in the order of each partition."""
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    found: list[Record] = []
    with Consumer(servers, {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(*partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            found += consumer.poll(1.0)
    return found
