"""A single node that loses the end of a log in a crash: leader epochs show the truncation to consumers (KIP-320)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from pybroker.client import Consumer, Fetcher, TopicPartition
from pybroker.client.errors import LogTruncationError
from tests.support.batches import batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, produce, produced

pytestmark = pytest.mark.process

TOPIC = "t"
PARTITION = TopicPartition(TOPIC, 0)
END, KEPT, LATER = 100, 80, 20
"""The old end of the log, its end after the crash, and the number of records that are then appended."""
QUICK = {"retry.backoff.ms": "10", "retry.backoff.max.ms": "50", "reconnect.backoff.ms": "10"}


@pytest.fixture
def broker(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A running broker with `END` records in one partition."""
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        assert wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000).topics[0].error_code == 0
    append(broker, "old", END)
    return broker


def append(broker: BrokerProcess, name: str, count: int) -> None:
    """Append batches of one record each."""
    with Wire(broker.bootstrap_servers) as wire:
        for number in range(count):
            batch = batch_of(f"{name} {number}".encode())
            assert produced(wire.query(produce(TOPIC, batch))).error_code == 0


def lose_tail(broker: BrokerProcess) -> None:
    """Kill the broker, cut its log at `KEPT`, start it again and append records with the offsets of lost records."""
    broker.kill()
    segment = max((broker.directory / f"{TOPIC}-0").glob("*.log"))
    cut(segment, KEPT)
    broker.start()
    append(broker, "new", LATER)


def cut(segment: Path, batches: int) -> None:
    kept = sum(len(batch.raw) for batch in read_batches(segment.read_bytes())[:batches])
    with segment.open("r+b") as file:
        file.truncate(kept)


def end_of_epoch(broker: BrokerProcess, epoch: int) -> Any:
    """Query where a leader epoch ends."""
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}
    topics = [{"topic": TOPIC, "partitions": [partition]}]
    with Wire(broker.bootstrap_servers) as wire:
        response = wire.call("OffsetForLeaderEpoch", 3, replica_id=-1, topics=topics)
    return response.topics[0].partitions[0]


def read(consumer: Consumer, count: int) -> list[tuple[int, bytes | None]]:
    """Return offset and value of so many records, or of fewer after 60 s."""
    records: list[tuple[int, bytes | None]] = []
    deadline = time.monotonic() + 60
    while len(records) < count and time.monotonic() < deadline:
        records += [(record.offset, record.value) for record in consumer.poll(0.2)]
    return records


def test_the_old_leader_epoch_ends_where_the_log_was_cut(broker: BrokerProcess) -> None:
    before = end_of_epoch(broker, 0)
    assert (before.leader_epoch, before.end_offset) == (0, END)
    lose_tail(broker)
    after = end_of_epoch(broker, 0)
    assert (after.error_code, after.leader_epoch, after.end_offset) == (0, 0, KEPT)
    assert end_of_epoch(broker, 1).end_offset == KEPT + LATER


def test_a_consumer_at_the_old_end_reads_the_records_below_it_and_logs_the_truncation(
    broker: BrokerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    with Consumer(broker.bootstrap_servers, {**QUICK, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([PARTITION])
        assert len(read(consumer, END)) == END
        lose_tail(broker)
        assert read(consumer, LATER) == [(KEPT + number, f"new {number}".encode()) for number in range(LATER)]
    assert (
        f"Truncation detected for {TOPIC}-0 at offset {END} (leader epoch 0): continuing at offset {KEPT}"
        in caplog.text
    )


def test_a_fetcher_at_the_old_end_logs_the_truncation(broker: BrokerProcess, caplog: pytest.LogCaptureFixture) -> None:
    """The line is written by the extension module."""
    with Fetcher(broker.bootstrap_servers, {**QUICK, "auto.offset.reset": "earliest"}) as fetcher:
        fetcher.assign({PARTITION: 0})
        records: list[int] = []

        def has(count: int) -> bool:
            records.extend(record.offset for record in fetcher.poll(0.2, END))
            return len(records) >= count

        wait_until(lambda: has(END), within=60, what="the records before the crash")
        lose_tail(broker)
        wait_until(lambda: has(END + LATER), within=60, what="the records after the crash")
    assert records == [*range(END), *range(KEPT, KEPT + LATER)]

    def warnings() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == "pybroker.client"]

    wait_until(lambda: any("reading goes on there" in line for line in warnings()), within=60, what="a warning")


def test_a_consumer_without_a_reset_policy_gets_a_truncation_error(broker: BrokerProcess) -> None:
    with Consumer(broker.bootstrap_servers, {**QUICK, "auto.offset.reset": "none"}) as consumer:
        consumer.assign([PARTITION])
        consumer.seek(PARTITION, 0)
        assert len(read(consumer, END)) == END
        lose_tail(broker)
        with pytest.raises(LogTruncationError) as truncated:
            read(consumer, LATER)
    divergent = truncated.value.divergent[PARTITION]
    assert divergent is not None
    assert (divergent.offset, divergent.leader_epoch) == (KEPT, 0)


def test_librdkafka_at_the_old_end_reads_the_records_below_it(broker: BrokerProcess) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        take(consumer, END)
        lose_tail(broker)
        assert take(consumer, LATER) == [(KEPT + number, f"new {number}".encode()) for number in range(LATER)]
    finally:
        consumer.close()


def take(consumer: confluent_kafka.Consumer, count: int) -> list[tuple[int | None, bytes | None]]:
    """Return offset and value of so many records; an error event is no record."""
    records: list[tuple[int | None, bytes | None]] = []
    deadline = time.monotonic() + 60
    while len(records) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            records.append((message.offset(), message.value()))
    return records
