"""Brokers that stop in good order: their clients learn where to go, and lose nothing; by processes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

import confluent_kafka
import pytest

from pybroker.client import Admin, NewTopic
from pybroker.protocol.errors import ErrorCode
from pybroker.testing import Cluster
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce, produced

pytestmark = pytest.mark.process

TOPIC, PARTITIONS = "orders", 3
RATE = 500
"""Records a second."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, {"min.insync.replicas": "2"})])
        yield cluster


def test_a_client_that_asks_a_stopping_broker_is_answered_who_leads_now(cluster: Cluster) -> None:
    leader = cluster.leader(TOPIC, 0)
    with Wire(cluster.address(leader)) as wire:
        assert produced(wire.query(produce(TOPIC, batch_of(b"before"), acks=1))).error_code == 0
        stopping = threading.Thread(target=cluster.stop, args=(leader,))
        stopping.start()
        codes = set(responds_until_closed(wire))
        stopping.join()
    assert codes <= {ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER in codes
    assert "the controller allows this broker to stop" in cluster.log(leader)
    assert cluster.leader(TOPIC, 0) != leader


def test_a_rolling_restart_costs_a_client_with_retries_no_error(cluster: Cluster) -> None:
    sender = Sender(cluster.bootstrap_servers)
    sender.start()
    for broker in cluster.brokers:
        before = sender.acknowledged
        cluster.restart(broker)
        for partition in range(PARTITIONS):
            cluster.wait_in_sync(TOPIC, partition)
        wait_until(lambda: sender.acknowledged > before, within=60, what="records are acknowledged")  # noqa: B023
    sent = sender.finish()
    assert sender.errors == []
    assert sender.acknowledged == sent
    assert received(cluster.bootstrap_servers, sent) == Counter({str(number): 1 for number in range(sent)})
    for broker in cluster.brokers:
        assert "the controller allows this broker to stop" in cluster.log(broker)
        assert "without moving leadership" not in cluster.log(broker)


def responds_until_closed(wire: Wire) -> Iterator[int]:
    """The codes of produces, one after the other, until the broker closes the connection."""
    while True:
        try:
            response = wire.query(produce(TOPIC, batch_of(b"more"), acks=1))
        except (ConnectionError, EOFError):
            return
        yield produced(response).error_code


class Sender(threading.Thread):
    """An idempotent producer that sends numbers at a rate."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 2, "log_level": 0}
        )
        self._ended = threading.Event()
        self._sent = 0
        self.acknowledged = 0
        self.errors: list[str] = []

    def run(self) -> None:
        """Send until `finish`."""
        started = time.monotonic()
        while not self._ended.is_set():
            while self._sent < (time.monotonic() - started) * RATE:
                value, partition = str(self._sent), self._sent % PARTITIONS
                self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._delivered)
                self._sent += 1
            self._producer.poll(0.005)

    def finish(self) -> int:
        """Wait for every answer, and return how many records were sent."""
        self._ended.set()
        self.join()
        assert self._producer.flush(60) == 0
        return self._sent

    def _delivered(self, error: object, _message: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.errors.append(str(error))


def received(servers: str, count: int) -> Counter[str]:
    """How often each value is in the topic, once at least `count` records are there."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "unused", "log_level": 0})
    beginnings = [confluent_kafka.TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)]
    consumer.assign(beginnings)
    found: Counter[str] = Counter()

    def is_read() -> bool:
        for message in consumer.consume(10_000, 0.2):
            assert message.error() is None, message.error()
            found[message.value().decode()] += 1
        return found.total() >= count

    try:
        wait_until(is_read, within=60, what=lambda: f"{found.total()} of {count} records are read")
    finally:
        consumer.close()
    return found
