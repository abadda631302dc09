"""DeleteRecords: a log gets a later start, and a read below it gets OFFSET_OUT_OF_RANGE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka.admin
import kafka.admin
import pytest

from tests.conformance.conftest import Server, Topic
from tests.support.batches import batch_of, read_batches
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.one_and_three

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
POLICY_VIOLATION = 44

RECORDS = 10
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


def delete(wire: Wire, *offsets: tuple[str, int, int], version: int = 2) -> list[tuple[int, int]]:
    """(error code, low watermark) of each partition; offsets are (topic, partition, offset)."""
    topics = [{"name": name, "partitions": [{"partition_index": p, "offset": o}]} for name, p, o in offsets]
    response = wire.call("DeleteRecords", version, topics=topics, timeout_ms=10_000)
    parts = {(topic.name, part.partition_index): part for topic in response.topics for part in topic.partitions}
    return [(parts[name, p].error_code, parts[name, p].low_watermark) for name, p, _ in offsets]


def offset_of(wire: Wire, topic: str, timestamp: int) -> int:
    """What ListOffsets says of a time."""
    requested = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}]
    response = wire.call(
        "ListOffsets", 7, replica_id=-1, isolation_level=0, topics=[{"name": topic, "partitions": requested}]
    )
    part = response.topics[0].partitions[0]
    assert part.error_code == 0
    return int(part.offset)


@pytest.fixture
def filled(wire: Wire, create: Callable[..., Topic]) -> str:
    """A topic with ten records of two each in a batch, the one after the other a second later."""
    topic = create().name
    for index in range(0, RECORDS, 2):
        batch = batch_of(b"%d" % index, b"%d" % (index + 1), base_timestamp=1000 * index + 1)
        assert produced(wire.query(produce(topic, batch))).error_code == 0
    return topic


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_deletes(wire: Wire, filled: str, version: int) -> None:
    assert delete(wire, (filled, 0, 4), version=version) == [(0, 4)]
    assert delete(wire, (filled, 0, 2), version=version) == [(0, 4)], "the log start does not go back"
    assert delete(wire, (filled, 0, -1), version=version) == [(0, RECORDS)]
    part = fetched(wire.query(fetch(filled, RECORDS)))
    assert (part.error_code, part.log_start_offset, part.high_watermark) == (0, RECORDS, RECORDS)
    assert produced(wire.query(produce(filled, batch_of(b"next")))).base_offset == RECORDS


def test_what_lies_below_the_log_start_is_out_of_range(wire: Wire, filled: str) -> None:
    assert delete(wire, (filled, 0, 5)) == [(0, 5)]
    below = fetched(wire.query(fetch(filled, 4)))
    assert (below.error_code, below.high_watermark, below.log_start_offset) == (OFFSET_OUT_OF_RANGE, -1, -1)
    part = fetched(wire.query(fetch(filled, 5)))
    assert (part.error_code, part.log_start_offset) == (0, 5)
    # The batch that holds the log start comes whole; clients pass over what lies below.
    assert read_batches(part.records)[0].base_offset == 4


def test_offsets_and_times_are_looked_up_from_the_log_start_on(wire: Wire, filled: str) -> None:
    assert delete(wire, (filled, 0, 5)) == [(0, 5)]
    assert (offset_of(wire, filled, EARLIEST), offset_of(wire, filled, LATEST)) == (5, RECORDS)
    assert offset_of(wire, filled, 0) == 5
    assert offset_of(wire, filled, MAX_TIMESTAMP) == 8
    assert delete(wire, (filled, 0, RECORDS)) == [(0, RECORDS)]
    assert (offset_of(wire, filled, EARLIEST), offset_of(wire, filled, 0)) == (RECORDS, -1)


def test_a_partition_that_cannot_be_harms_no_other(wire: Wire, filled: str, create: Callable[..., Topic]) -> None:
    compacted = create(filled + "-compacted", **{"cleanup.policy": "compact"}).name
    both = create(filled + "-both", **{"cleanup.policy": "compact,delete"}).name
    assert delete(
        wire, ("no-such-topic", 0, 1), (compacted, 0, 0), (both, 0, 0), (filled, 0, RECORDS + 1), version=2
    ) == [
        (UNKNOWN_TOPIC_OR_PARTITION, -1),
        (POLICY_VIOLATION, -1),
        (0, 0),
        (OFFSET_OUT_OF_RANGE, -1),
    ]
    assert delete(wire, (filled, 7, 1)) == [(UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert delete(wire, (filled, 0, -2)) == [(OFFSET_OUT_OF_RANGE, -1)]
    assert delete(wire, (filled, 0, 3)) == [(0, 3)]


def test_a_partition_that_is_named_often_is_answered_once(wire: Wire, filled: str) -> None:
    requested = [{"partition_index": 0, "offset": offset} for offset in (0, 6, 4)]
    response = wire.call("DeleteRecords", 2, topics=[{"name": filled, "partitions": requested}] * 2, timeout_ms=10_000)
    parts = [
        (topic.name, part.partition_index, part.low_watermark) for topic in response.topics for part in topic.partitions
    ]
    assert parts == [(filled, 0, 4)], "the offset that is named last counts"


def test_the_admin_of_confluent_kafka_deletes_records(server: Server, filled: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": server.bootstrap_servers})
    requested = confluent_kafka.TopicPartition(filled, 0, 6)
    (outcome,) = admin.delete_records([requested]).values()
    assert outcome.result(60).low_watermark == 6


def test_the_admin_of_kafka_python_deletes_records(server: Server, filled: str) -> None:
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    try:
        outcome: Any = admin.delete_records({kafka.TopicPartition(filled, 0): 6})
    finally:
        admin.close()
    (deleted,) = outcome.values()
    assert (deleted["error_code"], deleted["low_watermark"]) == (0, 6)
