"""Where a partition begins is asked before records of the same leader are: long polls do not keep it from an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pybroker.client import EARLIEST, Admin, Fetcher, NewTopic, Producer, TopicPartition
from pybroker.client.consuming.fetcher import Record
from pybroker.testing import Cluster

pytestmark = pytest.mark.process

TOPIC = "turns"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster with a topic of two partitions for each broker as leader, each with one record."""
    with Cluster(brokers=3) as running:
        leaders = [broker for broker in running.brokers for _ in range(2)]
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, assignments={at: [leader] for at, leader in enumerate(leaders)})])
            admin.wait_for_leaders(TOPIC)
        with Producer(running.bootstrap_servers) as producer:
            for at in range(len(leaders)):
                producer.send(TOPIC, b"one", partition=at).result(WAIT_S)
        yield running


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_partition_begins_beside_one_of_the_same_leader_that_waits_for_records(cluster: Cluster, broker: int) -> None:
    ended, new = (TopicPartition(TOPIC, 2 * (broker - 1) + at) for at in range(2))
    with Fetcher(cluster.bootstrap_servers) as fetcher:
        fetcher.assign({ended: 1, new: EARLIEST})
        deadline = time.monotonic() + WAIT_S
        read: list[Record] = []
        while not read:
            assert time.monotonic() < deadline, "the partition has not begun"
            read = fetcher.poll(0.2)
        assert [(record.partition, record.offset) for record in read] == [(new.partition, 0)]
