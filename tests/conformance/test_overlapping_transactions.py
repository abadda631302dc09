"""Transactions of several producers that overlap, as librdkafka, Java's consumer and this project's clients read them.

librdkafka writes, and its delivery reports have the offsets. Committed records are expected in offset order.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import confluent_kafka
import pyarrow as pa
import pytest

from pybench.peers.java import run_java_tool
from pybroker.client import ColumnFetcher, Consumer, TopicPartition
from tests.conformance.conftest import Server, serves
from tests.support.conditions import wait_until

END_TXN = 26
PARTITIONS = 2
READ_COMMITTED = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
SMALL_FETCHES = {**READ_COMMITTED, "max.partition.fetch.bytes": 200, "fetch.max.bytes": 300}
SEEDS = (0, 3, 11, 12, 17)
"""In each of them, transactions of one partition are aborted in another order than they began."""
_numbers = itertools.count()


class Written(NamedTuple):
    """A record in the log."""

    partition: int
    offset: int
    value: bytes
    transaction: int


@pytest.fixture(autouse=True)
def with_transactions(server: Server) -> None:
    if not serves(server, END_TXN):
        pytest.skip("the broker has no transaction coordinator")


@pytest.fixture
def topic(make_topic: Callable[[int], str]) -> str:
    return make_topic(PARTITIONS)


class Writers:
    """One transactional producer of librdkafka for each transaction."""

    def __init__(self, server: Server, topic: str, count: int) -> None:
        self._topic = topic
        self.written: list[Written] = []
        self._producers = []
        for _ in range(count):
            settings = {"bootstrap.servers": server.bootstrap_servers, "transactional.id": f"overlap-{next(_numbers)}"}
            producer = confluent_kafka.Producer({**settings, "linger.ms": 0})
            producer.init_transactions(60)
            producer.begin_transaction()
            self._producers.append(producer)

    def write(self, transaction: int, partition: int, value: bytes) -> None:
        """Write a record, which is in the log when this returns."""

        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            assert error is None, error
            self.written.append(Written(partition, message.offset(), value, transaction))

        producer = self._producers[transaction]
        producer.produce(self._topic, value, partition=partition, on_delivery=delivered)
        assert producer.flush(60) == 0

    def end(self, transaction: int, *, commit: bool) -> None:
        """End a transaction; its markers are in the log when this returns."""
        producer = self._producers[transaction]
        if commit:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)


def write_interleaved(server: Server, topic: str, chance: random.Random) -> list[Written]:
    """Write transactions of one to three records that overlap, and end them in any order; return what was committed."""
    count = chance.randint(3, 6)
    steps = [transaction for transaction in range(count) for _ in range(chance.randint(2, 4))]
    chance.shuffle(steps)
    left = [steps.count(transaction) for transaction in range(count)]
    committed = {transaction for transaction in range(count) if chance.random() < 0.3}
    writers = Writers(server, topic, count)
    for number, transaction in enumerate(steps):
        left[transaction] -= 1
        if left[transaction]:
            writers.write(transaction, chance.randrange(PARTITIONS), b"%d of %d" % (number, transaction))
        else:
            writers.end(transaction, commit=transaction in committed)
    # Behind them all: a reader that has it has passed the markers.
    last = Writers(server, topic, 1)
    for partition in range(PARTITIONS):
        last.write(0, partition, b"last")
    last.end(0, commit=True)
    found = [one for one in writers.written if one.transaction in committed] + last.written
    return sorted(found)


def by_librdkafka(
    server: Server, topic: str, starts: dict[int, int], last: dict[int, int]
) -> Iterator[tuple[int, int, bytes]]:
    settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": "g", **READ_COMMITTED}
    consumer = confluent_kafka.Consumer(settings)
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, index, start) for index, start in starts.items()])
        left = set(starts)
        while left:
            message = consumer.poll(60)
            assert message is not None
            assert message.error() is None
            yield message.partition(), message.offset(), message.value()
            if message.offset() >= last[message.partition()]:
                left.discard(message.partition())
    finally:
        consumer.close()


def by_consumer(
    server: Server, topic: str, starts: dict[int, int], last: dict[int, int], settings: Mapping[str, object]
) -> Iterator[tuple[int, int, bytes]]:
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.assign([TopicPartition(topic, index) for index in starts])
        for index, start in starts.items():
            consumer.seek(TopicPartition(topic, index), start)
        left = set(starts)
        while left:
            for record in consumer.poll(60):
                yield record.partition, record.offset, record.value or b""
                if record.offset >= last[record.partition]:
                    left.discard(record.partition)


def by_columns(
    server: Server, topic: str, starts: dict[int, int], last: dict[int, int]
) -> list[tuple[int, int, bytes]]:
    rows: list[tuple[int, int, bytes]] = []
    with ColumnFetcher(server.bootstrap_servers, {"isolation.level": "read_committed"}) as fetcher:
        fetcher.assign({TopicPartition(topic, index): start for index, start in starts.items()})

        def has_all() -> bool:
            taken = fetcher.take(1, columns=["partition", "offset", "value"])
            if taken is not None:
                batch = pa.record_batch(taken)
                rows.extend(zip(*(batch.column(name).to_pylist() for name in batch.schema.names), strict=True))
            return set(last.items()) <= {row[:2] for row in rows}

        wait_until(has_all, within=60, what="the last records")
    return rows


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_leave_out_aborted_transactions_in_whatever_order_they_end(
    server: Server, topic: str, seed: int
) -> None:
    chance = random.Random(seed)
    committed = write_interleaved(server, topic, chance)
    last = {one.partition: one.offset for one in committed if one.value == b"last"}
    for starts in (
        dict.fromkeys(range(PARTITIONS), 0),
        {index: chance.randint(0, last[index]) for index in range(PARTITIONS)},
    ):
        expected = [(one.partition, one.offset, one.value) for one in committed if one.offset >= starts[one.partition]]
        assert sorted(by_librdkafka(server, topic, starts, last)) == expected
        assert sorted(by_consumer(server, topic, starts, last, READ_COMMITTED)) == expected
        assert sorted(by_consumer(server, topic, starts, last, SMALL_FETCHES)) == expected
        assert sorted(by_columns(server, topic, starts, last)) == expected


@pytest.mark.java
def test_javas_console_consumer_reads_what_was_committed(server: Server, topic: str) -> None:
    committed = write_interleaved(server, topic, random.Random(SEEDS[0]))
    words = ["--bootstrap-server", server.bootstrap_servers, "--topic", topic, "--from-beginning"]
    words += ["--isolation-level", "read_committed", "--max-messages", str(len(committed))]
    read = run_java_tool("console-consumer", *words)
    assert read.returncode == 0, read.stderr
    assert sorted(read.stdout.encode().splitlines()) == sorted(one.value for one in committed)
