"""Consume, transform, produce over three brokers under kills and pauses: the output is the input, each record once.

Each client's copiers for themselves, one after the other on the same cluster. PYBROKER_EXACTLY_ONCE_SECONDS says how
long the faults last for each (`make exactly-once` takes ten minutes), PYBROKER_CHAOS_SEED which they are.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from pybroker.client import Admin
from pybroker.client.administration.topics import NewTopic
from pybroker.testing import Cluster
from tests.chaos.copiers import KINDS, Work
from tests.chaos.feeder import RATE, Feeder
from tests.support import repository
from tests.support.conditions import wait_until

SECONDS = float(os.environ.get("PYBROKER_EXACTLY_ONCE_SECONDS", "5"))
SEED = int(os.environ.get("PYBROKER_CHAOS_SEED", "7"))
PARTITIONS, COPIERS, KEYS = 3, 2, 5
_CALM_S = 120.0
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}

pytestmark = [pytest.mark.process, pytest.mark.timeout(SECONDS + 300), pytest.mark.xdist_group("exactly-once")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, properties=_SETTINGS) as cluster:
        yield cluster


class Copier:
    """A program of a kind, started again whenever it has ended."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process = self._start()
        self.starts = 1

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command, cwd=repository.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def look(self) -> None:
        """Start it again where it has ended."""
        if self._process.poll() is not None:
            self._process = self._start()
            self.starts += 1

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self._process.kill()
        self._process.wait()


def record(number: int) -> dict[str, Any]:
    """Return an input record, with a key that is its partition's."""
    partition = number % PARTITIONS
    return {"key": f"k{partition}.{number // PARTITIONS % KEYS}", "value": f"v{number}", "partition": partition}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.java if kind == "java" else ()) for kind in KINDS]
)
def test_the_output_is_the_input_each_record_once(cluster: Cluster, kind: str) -> None:
    random, source, target = Random(f"{SEED} {kind}"), f"in-{kind}", f"out-{kind}"
    with running(cluster, kind) as (feeder, copiers):
        while feeder.sent < RATE * SECONDS:
            disturb(cluster, feeder, copiers, random)
        feeder.stop()

        def copied() -> bool:
            for copier in copiers:
                copier.look()
            return len(read(cluster, target)) >= feeder.sent

        wait_until(copied, within=_CALM_S, what=lambda: f"{feeder.sent} records, {len(read(cluster, target))} copied")
        transform = KINDS[kind].transform
        taken = [(partition, key, transform(value)) for partition, key, value in read(cluster, source)]
        given = read(cluster, target)
    assert len(taken) == feeder.sent
    for partition in range(PARTITIONS):
        of_input = [one for one in taken if one[0] == partition]
        of_output = [one for one in given if one[0] == partition]
        assert sorted(of_output) == sorted(of_input), "each record once"
        for key in {key for _, key, _ in of_input}:
            assert [one for one in of_output if one[1] == key] == [one for one in of_input if one[1] == key]


def disturb(cluster: Cluster, feeder: Feeder, copiers: list[Copier], random: Random) -> None:
    """Kill or pause a broker, or end a copier; and have all run again. The input is the clock."""
    feeder.await_input(random.uniform(0.5, 2.5))
    broker = random.choice(cluster.brokers)
    what = random.choice(("kill", "pause", "restart", "copier"))
    if what == "copier":
        random.choice(copiers).kill()
    elif what == "pause":
        with cluster.paused(broker):
            feeder.await_input(random.uniform(0.5, 4.0))
    elif what == "kill":
        cluster.kill(broker)
        feeder.await_input(random.uniform(0.0, 2.0))
        cluster.start(broker)
    else:
        cluster.restart(broker)
    for copier in copiers:
        copier.look()


@contextmanager
def running(cluster: Cluster, kind: str) -> Iterator[tuple[Feeder, list[Copier]]]:
    """The input's writer and the copiers, from the topics' creation on."""
    source, target, bootstrap = f"in-{kind}", f"out-{kind}", cluster.bootstrap_servers
    works = [Work(bootstrap, f"copiers-{kind}", source, target, f"{kind}-{number}") for number in range(COPIERS)]
    commands = [KINDS[kind].command(work) for work in works]
    with Admin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        configs = {"min.insync.replicas": "2"}
        admin.create_topics([NewTopic(name, PARTITIONS, 3, configs=configs) for name in (source, target)])
    feeder = Feeder(bootstrap, source, record)
    copiers = [Copier(command) for command in commands]
    feeder.start()
    try:
        yield feeder, copiers
    finally:
        for copier in copiers:
            with suppress(ProcessLookupError):
                copier.kill()


def read(cluster: Cluster, topic: str) -> list[tuple[int, str, str]]:
    """Partition, key and value of all committed records up to the last stable offsets, in order in each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        found: list[tuple[int, str, str]] = []
        at_end: set[int] = set()
        while len(at_end) < PARTITIONS:
            message = consumer.poll(60)
            assert message is not None, f"{topic} is not read within 60 s"
            if message.error() is not None:
                at_end.add(message.partition())
            else:
                found.append((message.partition(), message.key().decode(), message.value().decode()))
        return found
    finally:
        consumer.close()
