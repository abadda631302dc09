"""OffsetForLeaderEpoch: where epochs end (KIP-101, KIP-320)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.conftest import Topic
from tests.support.batches import batch_of
from tests.support.wire import Wire, produce, produced

UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_LEADER_EPOCH = 3, 75


def end_of(wire: Wire, name: str, epoch: int, *, version: int = 4, partition: int = 0, known: int = -1) -> Any:
    """The answer for one partition."""
    requested = {"partition": partition, "current_leader_epoch": known, "leader_epoch": epoch}
    response = wire.call(
        "OffsetForLeaderEpoch", version, replica_id=-1, topics=[{"topic": name, "partitions": [requested]}]
    )
    return response.topics[0].partitions[0]


@pytest.fixture
def filled(wire: Wire, topic: Topic) -> Topic:
    """A partition with three records of epoch 0."""
    assert produced(wire.query(produce(topic.name, batch_of(b"a", b"b", b"c")))).error_code == 0
    return topic


@pytest.mark.parametrize("version", range(2, 5))
def test_the_newest_epoch_ends_where_the_log_does(wire: Wire, filled: Topic, version: int) -> None:
    found = end_of(wire, filled.name, 0, version=version)
    assert (found.error_code, found.partition, found.leader_epoch, found.end_offset) == (0, 0, 0, 3)


@pytest.mark.parametrize("epoch", [1, 7, -1])
def test_an_epoch_that_never_was_has_no_end(wire: Wire, filled: Topic, epoch: int) -> None:
    found = end_of(wire, filled.name, epoch)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, -1, -1)


def test_a_client_that_knows_a_later_leader_gets_an_error(wire: Wire, filled: Topic) -> None:
    assert end_of(wire, filled.name, 0, known=9).error_code == UNKNOWN_LEADER_EPOCH
    assert end_of(wire, filled.name, 0, known=0).error_code == 0


def test_what_does_not_exist_is_unknown(wire: Wire, filled: Topic) -> None:
    assert end_of(wire, filled.name, 0, partition=77).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert end_of(wire, f"no-{filled.name}", 0).error_code == UNKNOWN_TOPIC_OR_PARTITION
