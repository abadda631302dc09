"""Our client's transactions while brokers die: all or nothing in every partition, in order, and no commit is lost."""

from __future__ import annotations

import pytest

from pybroker.client import Admin, Consumer, NewTopic, Producer, TopicPartition, TransactionAbortableError
from pybroker.protocol.messages.find_coordinator import TRANSACTION
from pybroker.testing import Cluster
from tests.support import librdkafka_reader

pytestmark = [pytest.mark.process]

PARTITIONS = 3
COUNT = 60
KILLS = {15: "coordinator", 35: "leader"}
"""Before which transaction who is killed."""


def test_every_transaction_is_whole_when_its_coordinator_and_a_leader_are_killed() -> None:
    with Cluster(brokers=3) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", PARTITIONS, 3, {"min.insync.replicas": "2"})])
            admin.wait_for_leaders("t")
        settings = {"transactional.id": "x", "linger.ms": 0, "request.timeout.ms": 5_000}
        committed: list[int] = []
        with Producer(cluster.bootstrap_servers, settings) as producer:
            producer.init_transactions()
            for number in range(COUNT):
                if number in KILLS:
                    restart_and_kill(cluster, producer, KILLS[number])
                try:
                    with producer.transaction():
                        for index in range(PARTITIONS):
                            producer.send("t", b"%d" % number, partition=index)
                except TransactionAbortableError:
                    continue
                committed.append(number)
        found = read(cluster)
        theirs = librdkafka_reader.values(cluster.bootstrap_servers, "t", partitions=PARTITIONS)
    assert len(committed) > COUNT // 2
    assert found == [committed] * PARTITIONS
    assert [[int(value) for value in values] for values in theirs] == [committed] * PARTITIONS


def restart_and_kill(cluster: Cluster, producer: Producer, who: str) -> None:
    """Have every broker run and be in sync, then kill the coordinator of the transactional id, or a leader."""
    for broker in set(cluster.brokers) - set(cluster.running):
        cluster.start(broker)
    for index in range(PARTITIONS):
        cluster.wait_in_sync("t", index)
    if who == "leader":
        cluster.kill(cluster.leader("t"))
        return
    assert producer._transactions is not None
    address = producer._transactions.driver.cluster.known_coordinator("x", TRANSACTION)
    cluster.kill(next(broker for broker in cluster.brokers if cluster.address(broker) == address))


def read(cluster: Cluster) -> list[list[int]]:
    """By partition, the numbers that are committed."""
    parts = [TopicPartition("t", index) for index in range(PARTITIONS)]
    found: list[list[int]] = [[] for _ in parts]
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed"}
    with Consumer(cluster.bootstrap_servers, settings) as consumer:
        ends = consumer.end_offsets(*parts)
        consumer.assign(parts)
        while any(consumer.position(part) < ends[part] for part in parts):
            for record in consumer.poll(1):
                found[record.partition].append(int(record.value or b""))
    return found
