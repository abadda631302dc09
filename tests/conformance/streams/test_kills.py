"""Exactly once: instances are killed and started again, and each input counts once."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client import Consumer, Producer, TopicPartition
from tests.conformance.conftest import Server, serving
from tests.support.streams_application import await_commits, create_topics
from tests.support.streams_instance import Instance

pytestmark = pytest.mark.xdist_group("stream applications")

LETTERS = "abcdefg"
PARTITIONS = 3
ROUNDS = int(os.environ.get("PYBROKER_STREAMS_ROUNDS", "4"))
RECORDS = 1_000
BROKER = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "2000",
    "group.streams.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "offsets.topic.num.partitions": "3",
}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Server]:
    with serving(BROKER) as server:
        yield server


def _committed_counts(servers: str, topic: str) -> dict[str, list[int]]:
    """Return the committed counts of each letter, in the order of the log."""
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    counts: dict[str, list[int]] = {}
    with Consumer(servers, {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(*partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for record in consumer.poll(1.0):
                assert record.key is not None
                assert record.value is not None
                counts.setdefault(record.key.decode(), []).append(int.from_bytes(record.value, "big"))
    return counts


def test_each_input_counts_once_whatever_is_killed(brokers: Server, tmp_path: Path) -> None:
    servers, dice = brokers.bootstrap_servers, random.Random(7)
    create_topics(servers, ["words", "counted"], PARTITIONS)
    settings: dict[str, object] = {
        "application.id": "counting",
        "bootstrap.servers": servers,
        "topics": ["words", "counted"],
        "processing.guarantee": "exactly_once_v2",
        "statestore.cache.max.bytes": 0,
        "producer.transaction.timeout.ms": 2000,
        "num.stream.threads": 2,
    }
    sent: dict[str, int] = {}
    instances = [Instance(settings, tmp_path / name) for name in ("one", "two")]
    with Producer(servers) as producer:
        for turn in range(ROUNDS):
            for number in range(RECORDS):
                letter = dice.choice(LETTERS)
                sent[letter] = sent.get(letter, 0) + 1
                producer.send("words", f"{letter}{number}".encode(), str(number).encode())
            producer.flush()
            victim = instances[turn % 2]
            victim.await_state("RUNNING")
            victim.kill()
            victim.restart()
    await_commits(servers, "counting", ["words"], PARTITIONS)
    for instance in instances:
        instance.close()
    expected = {letter: list(range(1, count + 1)) for letter, count in sent.items()}
    assert _committed_counts(servers, "counted") == expected
