"""ListOffsets: by time, and by the special times (KIP-79, KIP-734, KIP-405)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.conftest import Topic
from tests.support.batches import Batch, Record, batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce, produced

pytestmark = pytest.mark.one_and_three

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
UNKNOWN_TOPIC_OR_PARTITION = 3
UNKNOWN_LEADER_EPOCH = 75
BEGIN = 1_700_000_000_000


def list_offset(
    wire: Wire, name: str, timestamp: int, *, version: int = 10, partition: int = 0, leader_epoch: int = -1
) -> Any:
    """The answer for one partition."""
    requested = {"partition_index": partition, "current_leader_epoch": leader_epoch, "timestamp": timestamp}
    response = wire.call(
        "ListOffsets",
        version,
        replica_id=-1,
        isolation_level=0,
        topics=[{"name": name, "partitions": [requested]}],
        timeout_ms=1000,
    )
    return response.topics[0].partitions[0]


@pytest.fixture
def filled(wire: Wire, topic: Topic) -> Topic:
    """Three batches of two records, a second apart, the times 0 1 | 2 3 | 4 2."""
    for first, deltas in ((0, (0, 1)), (2, (0, 1)), (4, (0, -2))):
        records = tuple(Record(b"v", timestamp_delta=1000 * delta) for delta in deltas)
        batch = Batch(records, base_timestamp=BEGIN + 1000 * first)
        assert produced(wire.query(produce(topic.name, batch.encode()))).error_code == 0
    return topic


@pytest.mark.parametrize("version", range(1, 12))
def test_the_ends_of_the_log(wire: Wire, filled: Topic, version: int) -> None:
    latest = list_offset(wire, filled.name, LATEST, version=version)
    earliest = list_offset(wire, filled.name, EARLIEST, version=version)
    assert (latest.error_code, latest.offset, latest.timestamp) == (0, 6, -1)
    assert (earliest.error_code, earliest.offset, earliest.timestamp) == (0, 0, -1)
    if version >= 4:
        assert latest.leader_epoch == 0


@pytest.mark.parametrize(
    ("seconds", "offset", "found_at"), [(-5, 0, 0), (0, 0, 0), (1, 1, 1), (2, 2, 2), (2.5, 3, 3), (4, 4, 4)]
)
def test_a_time_gives_the_first_record_not_before_it(
    wire: Wire, filled: Topic, seconds: float, offset: int, found_at: int
) -> None:
    found = list_offset(wire, filled.name, BEGIN + int(1000 * seconds))
    assert (found.error_code, found.offset, found.timestamp) == (0, offset, BEGIN + 1000 * found_at)


def test_a_time_after_the_last_record_gives_none(wire: Wire, filled: Topic) -> None:
    found = list_offset(wire, filled.name, BEGIN + 5000)
    assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)


def test_the_largest_timestamp_has_its_offset(wire: Wire, filled: Topic) -> None:
    found = list_offset(wire, filled.name, MAX_TIMESTAMP)
    assert (found.error_code, found.offset, found.timestamp) == (0, 4, BEGIN + 4000)


def test_an_empty_log_has_no_largest_timestamp(wire: Wire, topic: Topic) -> None:
    found = list_offset(wire, topic.name, MAX_TIMESTAMP)
    assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)
    assert list_offset(wire, topic.name, LATEST).offset == 0


def test_a_log_without_timestamps_has_the_largest_at_its_first_record(wire: Wire, topic: Topic) -> None:
    for _ in range(2):
        batch = Batch((Record(b"v"), Record(b"v")), base_timestamp=-1)
        assert produced(wire.query(produce(topic.name, batch.encode()))).error_code == 0
    found = list_offset(wire, topic.name, MAX_TIMESTAMP)
    assert (found.error_code, found.offset, found.timestamp) == (0, 0, -1)


def test_a_log_without_tiers_is_all_local(wire: Wire, filled: Topic) -> None:
    assert list_offset(wire, filled.name, EARLIEST_LOCAL).offset == 0
    assert list_offset(wire, filled.name, LATEST_TIERED).offset == -1


def test_unknown_partitions_and_epochs_get_an_error(wire: Wire, filled: Topic) -> None:
    assert list_offset(wire, "no-such-topic", LATEST).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(wire, filled.name, LATEST, partition=9).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(wire, filled.name, LATEST, leader_epoch=9).error_code == UNKNOWN_LEADER_EPOCH


def test_the_latest_offset_never_goes_backwards(wire: Wire, topic: Topic) -> None:
    seen = []
    for _ in range(50):
        wire.send(produce(topic.name, batch_of(b"a", b"b"), acks=0))
        seen.append(list_offset(wire, topic.name, LATEST).offset)
    assert seen == sorted(seen)
    wait_until(lambda: list_offset(wire, topic.name, LATEST).offset == 100, within=60, what="all are committed")
