"""Columns against a broker: what another client wrote comes out, what went in as columns another client reads."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest

from pybroker.client import EARLIEST, ColumnFetcher, Producer, TopicPartition
from tests.conformance.conftest import Server

pytestmark = pytest.mark.one_and_three

ROWS = 2000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
UTC = datetime.UTC

Headers = list[tuple[str, bytes | None]]


@pytest.fixture
def topic_of_three(make_topic: Callable[[int], str]) -> str:
    """A topic of three partitions."""
    return make_topic(3)


def read(server: Server, partitions: list[TopicPartition], rows: int, **properties: Any) -> list[dict[str, Any]]:
    """The first rows of the partitions, in the order in which they came."""
    with ColumnFetcher(server.bootstrap_servers, {k.replace("_", "."): v for k, v in properties.items()}) as fetcher:
        fetcher.assign(dict.fromkeys(partitions, EARLIEST))
        found: list[dict[str, Any]] = []
        while len(found) < rows:
            columns = fetcher.take(10)
            assert columns is not None, f"only {len(found)} of {rows} rows came"
            found += pa.record_batch(columns).to_pylist()
        return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_another_client_wrote_comes_as_columns(server: Server, topic_of_three: str, codec: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": server.bootstrap_servers, "compression.type": codec, "enable.idempotence": True}
    )
    written = []
    for number in range(ROWS):
        key = None if number % 3 == 0 else b"key %d" % (number % 50)
        value = None if number % 10 == 9 else b"value %d" % number * (number % 7)
        headers = [("h", b"%d" % number), ("none", None), ("h", b"")] if number % 4 == 0 else []
        producer.produce(
            topic_of_three, value, key, partition=number % 3, timestamp=1_700_000_000_000 + number, headers=headers
        )
        shown = [{"key": k, "value": v} for k, v in headers] or None
        written.append((number % 3, number // 3, 1_700_000_000_000 + number, key, value, shown))
        producer.poll(0)
    assert producer.flush(60) == 0
    found = read(server, [TopicPartition(topic_of_three, index) for index in range(3)], ROWS)
    rows = [
        (r["partition"], r["offset"], round(r["timestamp"].timestamp() * 1000), r["key"], r["value"], r["headers"])
        for r in found
    ]
    assert sorted(rows, key=lambda row: row[:2]) == sorted(written, key=lambda row: row[:2])


@pytest.mark.parametrize(
    ("properties", "run"),
    [
        ({}, 10),
        ({"partitioner": "murmur2_random"}, 10),
        ({"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"}, 1),
    ],
)
def test_values_alone_go_round_the_partitions_as_single_sends_do(
    server: Server, topic_of_three: str, properties: dict[str, Any], run: int
) -> None:
    """A partition gets `batch.size` bytes at a time, or every third record; over the ends of batches and calls."""
    values = [b"%0100d" % number for number in range(95)]
    with Producer(server.bootstrap_servers, {"batch.size": 1000, **properties}) as producer:
        for first, end in ((0, 7), (7, 45), (45, 95)):
            batch = pa.record_batch({"value": pa.array(values[first:end], pa.binary())})
            assert len(producer.send_columns(batch, topic=topic_of_three)) == end - first
        for value in values[:30]:
            producer.send(topic_of_three, value)
        producer.flush()
    found = read(server, [TopicPartition(topic_of_three, index) for index in range(3)], 125)
    by_partition = [[row["value"] for row in found if row["partition"] == index] for index in range(3)]
    first = next(index for index in range(3) if values[0] in by_partition[index][:1])
    everything = [*values, *values[:30]]
    runs = [everything[start : start + run] for start in range(0, len(everything), run)]
    expected: list[list[bytes]] = [[], [], []]
    for number, part in enumerate(runs):
        expected[(first + number) % 3] += part
    assert by_partition == expected


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_what_went_in_as_columns_another_client_reads(server: Server, topic_of_three: str, codec: str) -> None:
    keys = [None if number % 5 == 0 else b"key %d" % (number % 40) for number in range(ROWS)]
    values = [None if number % 10 == 9 else b"value %d" % number for number in range(ROWS)]
    times = [datetime.datetime.fromtimestamp(1_700_000_000 + number, UTC) for number in range(ROWS)]
    headers: list[Headers | None] = [[("h", b"%d" % n), ("none", None)] if n % 4 == 0 else None for n in range(ROWS)]
    batch = pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
            "headers": pa.array(
                [None if h is None else [{"key": k, "value": v} for k, v in h] for h in headers], HEADERS
            ),
            "partition": pa.array([number % 3 if number % 2 else None for number in range(ROWS)], pa.int32()),
        }
    )
    with Producer(server.bootstrap_servers, {"compression.type": codec}) as producer:
        assert len(producer.send_columns(batch, topic=topic_of_three)) == ROWS
        assert producer.producer_id()[0] >= 0
        producer.flush()
    found = consumed(server, topic_of_three, ROWS)
    order = {value: number for number, value in enumerate(values) if value is not None}
    by_partition: dict[int, list[int]] = {}
    for message in found:
        if message.value() is not None:
            number = order.pop(message.value())
            by_partition.setdefault(message.partition(), []).append(number)
            assert message.key() == keys[number]
            assert message.timestamp()[1] == (1_700_000_000 + number) * 1000
            assert (message.headers() or None) == headers[number]
            if number % 2:
                assert message.partition() == number % 3
    assert order == {}
    assert sum(message.value() is None for message in found) == values.count(None)
    assert all(numbers == sorted(numbers) for numbers in by_partition.values())


def consumed(server: Server, topic: str, count: int) -> list[Any]:
    """That many messages, by librdkafka."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "unused"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(3)])
        found: list[Any] = []
        while len(found) < count:
            arrived = consumer.consume(count - len(found), 10)
            assert arrived, f"only {len(found)} of {count} messages came"
            assert [message.error() for message in arrived if message.error()] == []
            found += arrived
        return found
    finally:
        consumer.close()


def test_a_key_goes_where_a_sent_record_of_that_key_goes(server: Server, topic_of_three: str) -> None:
    keys = [b"key %d" % number for number in range(100)]
    with Producer(server.bootstrap_servers) as producer:
        sent = [producer.send(topic_of_three, b"one", key) for key in keys]
        columns = {"key": pa.array(keys), "value": pa.array([b"many"] * 100), "topic": pa.array([topic_of_three] * 100)}
        producer.send_columns(pa.record_batch(columns))
        producer.flush()
        chosen = {key: delivery.result().partition for key, delivery in zip(keys, sent, strict=True)}
    rows = read(server, [TopicPartition(topic_of_three, index) for index in range(3)], 200)
    assert {row["key"]: row["partition"] for row in rows if row["value"] == b"many"} == chosen


def test_aborted_records_are_hidden_under_read_committed(server: Server, topic_of_three: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for record in range(100):
            producer.produce(topic_of_three, b"%d %d" % (number, record), partition=0)
        assert producer.flush(60) == 0  # an abort forgets what was not sent yet
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)
    first = [TopicPartition(topic_of_three, 0)]
    committed = read(server, first, 300, isolation_level="read_committed")
    assert [row["value"] for row in committed] == [b"%d %d" % (n, r) for n in (0, 2, 4) for r in range(100)]
    assert len(read(server, first, 600)) == 600
