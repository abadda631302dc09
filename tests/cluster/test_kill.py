"""kill -9 under load, again and again: what was acknowledged is there, in order, and once for idempotent producers.

A killed process loses nothing that it has written: the page cache is the kernel's. What is doubted here is the torn
tail of a log, its indexes, the producers' state and the metadata log.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator

import confluent_kafka
import confluent_kafka.admin
import pytest

from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, produce, produced

ROUNDS = int(os.environ.get("PYBROKER_KILL_ROUNDS", "20"))
PARTITIONS = 3
ACKNOWLEDGED_PER_ROUND = 20_000
PADDING = b"." * 80

pytestmark = [pytest.mark.process, pytest.mark.timeout(300 + 30 * max(0, ROUNDS - 20))]


class Load:
    """A producer that sends numbered records from a thread of its own until it is told to stop.

    `acknowledged` maps partition and offset to the number that was acknowledged there.
    """

    def __init__(self, address: str, topic: str, *, idempotent: bool) -> None:
        self.topic = topic
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.failures: list[str] = []
        self.sent = 0
        self._stop = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "enable.idempotence": idempotent,
                "max.in.flight.requests.per.connection": 5 if idempotent else 1,
                "linger.ms": 2,
                "batch.size": 16_384,
                "queue.buffering.max.messages": 20_000,
                "delivery.timeout.ms": 120_000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "log_level": 0,
                "on_delivery": self._delivered,
            },
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def finish(self) -> None:
        """Stop sending, and wait until everything sent is acknowledged or has failed."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(120) == 0

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            while not self._stop.is_set():
                try:
                    self._producer.produce(self.topic, b"%d" % number + PADDING, partition=number % PARTITIONS)
                except BufferError:
                    self._producer.poll(0.01)
                    continue
                self.sent = number + 1
                break
            self._producer.poll(0)

    def _delivered(self, error: object, message: confluent_kafka.Message) -> None:
        value, partition, offset = message.value(), message.partition(), message.offset()
        if error is not None or value is None or partition is None or offset is None:
            self.failures.append(str(error))
            return
        self.acknowledged[partition, offset] = int(value.removesuffix(PADDING))


def read_all(address: str, topic: str) -> Iterator[tuple[int, int, int]]:
    """Partition, offset and number of every record, partition by partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False, "log_level": 0}
    )
    try:
        for partition in range(PARTITIONS):
            where = confluent_kafka.TopicPartition(topic, partition, 0)
            _first, end = consumer.get_watermark_offsets(where, timeout=20)
            consumer.assign([where])
            offset = -1
            while offset < end - 1:
                batch = consumer.consume(10_000, 10)
                assert batch, f"{topic}-{partition}: nothing more came after offset {offset} of {end}"
                for message in batch:
                    assert message.error() is None
                    value, at = message.value(), message.offset()
                    assert value is not None
                    assert at == offset + 1, f"{topic}-{partition}: offset {at} came after {offset}"
                    offset = at
                    yield partition, at, int(value.removesuffix(PADDING))
    finally:
        consumer.close()


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_what_was_acknowledged_survives_kills(make_broker: Callable[..., BrokerProcess], idempotent: bool) -> None:
    # Small segments, so that kills fall into rolls as well.
    broker = make_broker(log_segment_bytes=str(1 << 20), log_index_interval_bytes="1024").start()
    topic = "load"
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    admin.create_topics([confluent_kafka.admin.NewTopic(topic, PARTITIONS, 1)])[topic].result(20)

    load = Load(broker.bootstrap_servers, topic, idempotent=idempotent)
    try:
        for _ in range(ROUNDS):
            goal = len(load.acknowledged) + ACKNOWLEDGED_PER_ROUND
            wait_until(
                lambda goal=goal: len(load.acknowledged) >= goal or load.failures,  # type: ignore[misc]
                within=60,
                what=f"{ACKNOWLEDGED_PER_ROUND} records acknowledged since the restart",
            )
            assert load.failures == []
            broker.kill()
            broker.start()
    finally:
        load.finish()
    assert load.failures == []

    stored = defaultdict(list)
    for partition, offset, number in read_all(broker.bootstrap_servers, topic):
        stored[partition].append(number)
        acknowledged = load.acknowledged.pop((partition, offset), number)
        assert acknowledged == number, f"offset {offset} was acknowledged for {acknowledged} and holds {number}"
    assert not load.acknowledged, f"{len(load.acknowledged)} acknowledged records are gone"
    for partition, numbers in stored.items():
        every = list(range(partition, load.sent, PARTITIONS))
        if idempotent:
            assert numbers == every, "each number once, in order"
        else:
            assert list(dict.fromkeys(numbers)) == every, "each number at least once, first seen in order"


def test_topics_that_were_created_and_deleted_survive_kills(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker().start()
    expected: dict[str, object] = {}
    for round_number in range(5):
        with Wire(broker.bootstrap_servers) as wire:
            for number in range(20):
                name = f"topic-{round_number}-{number}"
                made = wire.call(
                    "CreateTopics", 7, topics=[{"name": name, "num_partitions": 2, "replication_factor": 1}]
                )
                assert made.topics[0].error_code == 0
                expected[name] = made.topics[0].topic_id
            gone = f"topic-{round_number}-7"
            assert wire.call("DeleteTopics", 6, topics=[{"name": gone}]).responses[0].error_code == 0
            del expected[gone]
        broker.kill()
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            shown = {topic.name: topic.topic_id for topic in wire.call("Metadata", 12, topics=None).topics}
            assert shown == expected
            for name in list(expected)[-3:]:
                assert produced(wire.ask(produce(name, batch_of(b"usable"), partition=1))).error_code == 0
    directories = {path.name.rsplit("-", 1)[0] for path in broker.directory.glob("topic-*-[01]") if path.is_dir()}
    assert directories == set(expected)
