"""What a program meets of the clients beside records: iteration, what they say of trouble, metrics, a record's look."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pybroker.client import (
    Admin,
    AsyncConsumer,
    BrokerError,
    ClientError,
    ColumnFetcher,
    Consumer,
    Fetcher,
    NewTopic,
    Producer,
    TopicPartition,
)
from pybroker.client.errors import ClosedError, UnreachableError
from pybroker.testing import Broker
from tests.conformance.conftest import Server
from tests.support.conditions import wait_until
from tests.support.processes import free_port

RECORDS = 10


@pytest.fixture
def partitions(server: Server, topic_name: str) -> list[TopicPartition]:
    """Two partitions with five records each: the even numbers, and the odd ones."""
    with Admin(server.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic_name, 2, -1)])
        admin.wait_for_leaders(topic_name)
    with Producer(server.bootstrap_servers) as producer:
        for number in range(RECORDS):
            producer.send(topic_name, b"%d" % number, partition=number % 2)
    return [TopicPartition(topic_name, index) for index in (0, 1)]


@pytest.fixture
def settings(topic_name: str) -> dict[str, Any]:
    return {"group.id": f"group-{topic_name}", "auto.offset.reset": "earliest"}


def test_iteration_gives_every_record_and_commits_what_it_gave(
    server: Server, partitions: list[TopicPartition], settings: dict[str, Any]
) -> None:
    first: list[bytes | None] = []
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe([partitions[0].topic])
        for record in consumer:
            first.append(record.value)
            if len(first) == 3:
                break
        positions = {partition: consumer.position(partition) for partition in partitions}
        assert sum(positions.values()) == 3
    second: list[bytes | None] = []
    with Consumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe([partitions[0].topic])
        for record in consumer:
            second.append(record.value)
            if len(second) == RECORDS - 3:
                break
        assert consumer.poll(0.0) == []
    assert sorted(int(value or b"") for value in first + second) == list(range(RECORDS))


def test_iteration_follows_a_seek_and_ends_when_the_consumer_is_closed(
    server: Server, partitions: list[TopicPartition]
) -> None:
    given = []
    with Consumer(server.bootstrap_servers) as consumer:
        consumer.assign(partitions[:1])
        consumer.seek(partitions[0], 0)
        for record in consumer:
            given.append(record.offset)
            if given == [0, 1]:
                consumer.seek(partitions[0], 1)
            if given[2:] == [1, 2]:
                consumer.pause(partitions[0])
                consumer.resume(partitions[0])
            if record.offset == 4:
                consumer.close()
    assert given == [0, 1, 1, 2, 3, 4]
    with pytest.raises(ClosedError):
        iter(consumer)


async def test_iteration_over_asyncio_gives_the_same(
    server: Server, partitions: list[TopicPartition], settings: dict[str, Any]
) -> None:
    async with AsyncConsumer(server.bootstrap_servers, settings) as consumer:
        consumer.subscribe([partitions[0].topic])
        given = []
        async for record in consumer:
            given.append(int(record.value or b""))
            if len(given) == RECORDS:
                break
    assert sorted(given) == list(range(RECORDS))


def test_iteration_over_nothing_is_an_error(server: Server) -> None:
    with (
        Consumer(server.bootstrap_servers) as consumer,
        pytest.raises(ClientError, match="nothing to iterate over: subscribe"),
    ):
        next(consumer)


async def test_an_admin_in_an_event_loop_names_the_one_that_belongs_there(server: Server) -> None:
    admin = Admin(server.bootstrap_servers)
    with admin, pytest.raises(ClientError, match="use AsyncAdmin, and await it"):
        admin.list_topics()


SOON = {"default.api.timeout.ms": 1_500, "retry.backoff.max.ms": 100, "allow.auto.create.topics": False}
READ: list[tuple[dict[str, Any], Callable[[Consumer], None]]] = [
    ({"group.id": "face"}, lambda consumer: consumer.subscribe(["not-there"])),
    ({}, lambda consumer: consumer.assign([TopicPartition("not-there", 3)])),
]


@pytest.mark.parametrize(("settings", "read"), READ, ids=["subscribed", "assigned"])
def test_a_consumer_says_that_no_broker_answers(
    settings: dict[str, Any], read: Callable[[Consumer], None], caplog: pytest.LogCaptureFixture
) -> None:
    server = f"127.0.0.1:{free_port()}"
    with Consumer(server, {**settings, **SOON}) as consumer:
        read(consumer)
        with pytest.raises(UnreachableError, match=rf"{server}: .* tries in .* \(default.api.timeout.ms=1500\)"):
            next(consumer)
    assert any(server in line for line in warnings_of(caplog))


@pytest.mark.parametrize(("settings", "read"), READ, ids=["subscribed", "assigned"])
def test_a_consumer_says_that_a_topic_is_not_there(
    server: Server, settings: dict[str, Any], read: Callable[[Consumer], None], caplog: pytest.LogCaptureFixture
) -> None:
    with Consumer(server.bootstrap_servers, {**settings, **SOON}) as consumer:
        read(consumer)
        with pytest.raises(BrokerError, match=r"topic 'not-there'.*UNKNOWN_TOPIC_OR_PARTITION.*tries in"):
            next(consumer)
    assert any("topic 'not-there'" in line for line in warnings_of(caplog))
    with Admin(server.bootstrap_servers) as admin:
        assert "not-there" not in admin.list_topics(), "allow.auto.create.topics=false holds for every request"


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if (r.name, r.levelno) == ("pybroker.client", logging.WARNING)]


def test_a_partition_that_a_topic_lacks_is_named(server: Server, partitions: list[TopicPartition]) -> None:
    with Consumer(server.bootstrap_servers, SOON) as consumer:
        consumer.assign([TopicPartition(partitions[0].topic, 7)])
        with pytest.raises(BrokerError, match=rf"topic '{partitions[0].topic}' partition 7: .*UNKNOWN_TOPIC"):
            next(consumer)


def test_a_record_shows_what_it_is(server: Server, topic_name: str) -> None:
    with Producer(server.bootstrap_servers) as producer:
        producer.send(topic_name, b"v" * 100, key=b"\xff", timestamp_ms=7, headers=[("trace", b"1"), ("empty", None)])
        producer.send(topic_name, None, timestamp_ms=8)
    with Fetcher(server.bootstrap_servers) as fetcher:
        fetcher.assign({TopicPartition(topic_name, 0): 0})
        long, tombstone = [record for _ in range(2) for record in fetcher.poll(60, 1)]
    shown = f"Record(topic='{topic_name}', partition=0, offset=0, timestamp_ms=7, key=b'\\xff', value=b'{'v' * 64}'"
    assert repr(long) == f'{shown}... (100 bytes), headers=["trace", "empty"])'
    assert repr(tombstone).endswith("offset=1, timestamp_ms=8, key=None, value=None)")


def test_metrics_have_kafkas_names_and_count_what_was_done(server: Server, topic_name: str) -> None:
    with Producer(server.bootstrap_servers, {"batch.size": 1000}) as producer:
        assert producer.metrics()["record-send-total"] == 0
        for number in range(100):
            producer.send(topic_name, b"%090d" % number)
        producer.flush()
        wait_until(lambda: producer.metrics()["requests-in-flight"] == 0, within=60, what="no request in flight")
        sent = producer.metrics()
    assert (sent["record-send-total"], sent["record-error-total"], sent["record-retry-total"]) == (100, 0, 0)
    assert 100 * 90 < sent["byte-total"] < 100 * 200
    assert 90 < sent["batch-size-avg"] <= sent["batch-size-max"] <= 2000
    assert sent["buffer-available-bytes"] == sent["buffer-total-bytes"] == 33_554_432
    assert sent["connection-close-total"] <= 1, "that to the bootstrap server, once brokers are known by their ids"
    assert 1 <= sent["connection-count"] == sent["connection-creation-total"] - sent["connection-close-total"]
    assert sent["request-total"] == sent["response-total"] > 2
    assert 0 < sent["request-latency-avg"] <= sent["request-latency-max"]
    assert sent["outgoing-byte-total"] > sent["byte-total"]
    assert sent["record-send-rate"] > 0
    with Consumer(server.bootstrap_servers) as consumer:
        partition = TopicPartition(topic_name, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        read = 0
        while read < 100:
            read += len(consumer.poll(60))
        got = consumer.metrics()
    assert (got["records-consumed-total"], got["assigned-partitions"], got["records-lag-max"]) == (100, 1, 0)
    assert got["bytes-consumed-total"] == sent["byte-total"]
    assert got["fetch-total"] >= 1
    assert 0 < got["fetch-size-avg"] <= got["fetch-size-max"]
    assert got["bytes-consumed-rate"] > 0
    with ColumnFetcher(server.bootstrap_servers) as fetcher:
        fetcher.assign({partition: 0})
        rows = 0
        while rows < 100:
            columns = fetcher.take(10)
            rows += columns.rows if columns is not None else 0
        assert fetcher.metrics()["records-consumed-total"] == 100


def test_records_are_sent_again_as_often_as_retries_says_and_counted(topic_name: str) -> None:
    with Broker() as broker:
        broker.fail("Produce", "NOT_ENOUGH_REPLICAS", times=None)
        with Producer(broker.bootstrap_servers, {"retries": 2, "retry.backoff.ms": 1}) as producer:
            delivery = producer.send(topic_name, b"v")
            with pytest.raises(BrokerError, match="NOT_ENOUGH_REPLICAS"):
                delivery.result(60)
            counted = producer.metrics()
    assert (counted["record-retry-total"], counted["record-error-total"]) == (2, 1)


TABLE = {"key": ["alice", None, "bob"], "value": ["tea", "a value of more than twelve bytes", None]}


def tables() -> list[Any]:
    """The same rows as every kind of Arrow data that programs have."""
    table = pa.table(TABLE)
    views = pa.table({name: pa.array(column, pa.string_view()) for name, column in TABLE.items()})
    coded = pa.table({name: pa.array(column).dictionary_encode() for name, column in TABLE.items()})
    large = pa.table({name: pa.array(column, pa.large_string()) for name, column in TABLE.items()})
    return [table, views, coded, large, table.to_reader(max_chunksize=1), views.to_batches()[0]]


@pytest.mark.parametrize("number", range(len(tables())))
def test_arrow_data_of_every_layout_is_sent(server: Server, topic_name: str, number: int) -> None:
    assert sent_rows(server, topic_name, tables()[number]) == [
        (b"alice", b"tea"),
        (None, b"a value of more than twelve bytes"),
        (b"bob", None),
    ]


def test_frames_of_polars_are_sent(server: Server, topic_name: str) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(TABLE).with_columns(polars.lit(0).alias("partition").cast(polars.Int32))
    assert len(sent_rows(server, topic_name, frame)) == 3
    coded = polars.DataFrame({"value": ["a", "b"] * 50}).with_columns(polars.col("value").cast(polars.Categorical))
    with Producer(server.bootstrap_servers) as producer:
        assert len(producer.send_columns(coded, topic=topic_name)) == 100


def sent_rows(server: Server, topic: str, data: Any) -> list[tuple[bytes | None, bytes | None]]:
    with Producer(server.bootstrap_servers) as producer:
        assert len(producer.send_columns(data, topic=topic)) == 3
        producer.flush()
    with Fetcher(server.bootstrap_servers) as fetcher:
        fetcher.assign({TopicPartition(topic, 0): 0})
        rows: list[tuple[bytes | None, bytes | None]] = []
        while len(rows) < 3:
            rows += [(record.key, record.value) for record in fetcher.poll(60)]
    return rows


def test_a_row_of_a_stream_that_cannot_be_sent_is_counted_through_its_batches(server: Server, topic_name: str) -> None:
    table = pa.table({"value": [b"v"] * 5, "partition": pa.array([0, 0, 0, 9, 0], pa.int32())})
    with (
        Producer(server.bootstrap_servers) as producer,
        pytest.raises(ClientError, match=r"row 3: .*no partition 9; no row of the batch was sent"),
    ):
        producer.send_columns(table.to_reader(max_chunksize=2), topic=topic_name)
    with (
        Producer(server.bootstrap_servers) as producer,
        pytest.raises(ValueError, match="list: must be a record batch"),
    ):
        producer.send_columns([b"v"], topic=topic_name)  # type: ignore[arg-type]
