"""A load of numbered records with their acknowledgements, and a reader of every offset."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import confluent_kafka

PARTITIONS = 3
PADDING = b"." * 80


class Load:
    """A producer that sends numbered records in a thread until it is stopped.

    `acknowledged` maps partition and offset to the number that was acknowledged there.
    """

    def __init__(self, address: str, topic: str, *, idempotent: bool, pause_s: float = 0) -> None:
        """`pause_s` is the time between two records, in seconds."""
        self.topic = topic
        self._pause_s = pause_s
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
        """Stop sending, and wait until every record is acknowledged or has failed."""
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
            if self._pause_s:
                self._stop.wait(self._pause_s)

    def _delivered(self, error: object, message: confluent_kafka.Message) -> None:
        value, partition, offset = message.value(), message.partition(), message.offset()
        if error is not None or value is None or partition is None or offset is None:
            self.failures.append(str(error))
            return
        self.acknowledged[partition, offset] = int(value.removesuffix(PADDING))


def read_all(address: str, topic: str) -> Iterator[tuple[int, int, int]]:
    """Return the partition, offset and number of every record, by partition."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False, "log_level": 0}
    )
    try:
        for partition in range(PARTITIONS):
            where = confluent_kafka.TopicPartition(topic, partition, 0)
            _first, end = consumer.get_watermark_offsets(where, timeout=60)
            consumer.assign([where])
            offset = -1
            while offset < end - 1:
                batch = consumer.consume(min(10_000, end - 1 - offset), 10)
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
