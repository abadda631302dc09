"""Transactions that time out, ids that expire, and earlier versions of the feature: a server with settings of its own.

Claims hold of Apache Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.conftest import Server, Topic, serving, transactional
from tests.conformance.transactions import (
    ABORT,
    COMMIT,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    OK,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_NOT_FOUND,
    Transactional,
    producers,
    see,
    seen_committed,
)
from tests.support.conditions import wait_until
from tests.support.wire import Wire

SETTINGS = {
    "transaction.max.timeout.ms": "60000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    "transactional.id.expiration.ms": "1500",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    "producer.id.expiration.ms": "3000",
    "producer.id.expiration.check.interval.ms": "100",
    "transaction.state.log.num.partitions": "3",
}
UPGRADE, SAFE_DOWNGRADE = 1, 2


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(SETTINGS) as started:
        yield started


@pytest.fixture
def sender(wire: Wire, server: Server) -> Transactional:
    """A producer that no other test has."""
    return transactional(wire, server)


def timed_out(sender: Transactional, topic: str) -> Transactional:
    """A producer whose transaction was aborted as it took too long."""
    sender.init(timeout_ms=100)
    assert sender.add(topic) == OK
    assert sender.write(topic, b"late").error_code == OK
    sender.wait_for("CompleteAbort")
    return sender


def test_a_transaction_that_takes_too_long_is_aborted(sender: Transactional, topic: Topic) -> None:
    timed_out(sender, topic.name)
    seen_committed(sender.wire, topic.name)
    seen = see(sender.wire, topic.name)
    assert [(one.is_commit, one.epoch) for one in seen.markers] == [(False, sender.epoch + 1)]
    assert seen.last_stable_offset == seen.high_watermark == 2
    assert sender.describe().producer_epoch == sender.epoch + 1


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5])
def test_who_was_timed_out_does_not_commit(sender: Transactional, topic: Topic, version: int) -> None:
    timed_out(sender, topic.name)
    expected = {0: INVALID_PRODUCER_EPOCH, 1: INVALID_PRODUCER_EPOCH, 5: INVALID_TXN_STATE}
    assert sender.end(COMMIT, version) == expected.get(version, PRODUCER_FENCED)


def test_who_was_timed_out_writes_nothing(sender: Transactional, topic: Topic) -> None:
    timed_out(sender, topic.name)
    for version in (11, 12):
        assert sender.write(topic.name, b"later", version=version).error_code == INVALID_PRODUCER_EPOCH
    assert sender.add(topic.name) == PRODUCER_FENCED


def test_who_was_timed_out_begins_anew_by_its_id_and_epoch(sender: Transactional, topic: Topic) -> None:
    timed_out(sender, topic.name)
    before = sender.epoch
    sender.init(producer_id=sender.producer_id, epoch=sender.epoch)
    assert sender.epoch == before + 1
    sender.run(topic.name, b"again")
    seen_committed(sender.wire, topic.name, b"again")


def test_the_longest_timeout_is_the_settings(sender: Transactional) -> None:
    assert sender.query_init(timeout_ms=60_001).error_code == INVALID_TRANSACTION_TIMEOUT
    assert sender.query_init(timeout_ms=60_000).error_code == OK


def test_an_id_that_is_silent_expires(sender: Transactional, topic: Topic) -> None:
    sender.init()
    sender.run(topic.name, b"a")
    before = sender.producer_id
    wait_until(
        lambda: sender.describe().error_code == TRANSACTIONAL_ID_NOT_FOUND, within=60, what=f"{sender.id} expires"
    )
    assert sender.add(topic.name) == INVALID_PRODUCER_ID_MAPPING
    sender.init()
    assert (sender.epoch, sender.producer_id != before) == (0, True)
    sender.run(topic.name, b"b")
    seen_committed(sender.wire, topic.name, b"a", b"b")


def test_an_open_transaction_keeps_its_id(sender: Transactional, topic: Topic, wire: Wire, server: Server) -> None:
    sender.init(timeout_ms=60_000)
    sender.add(topic.name)
    sender.write(topic.name, b"a")
    silent = transactional(wire, server).init()
    wait_until(lambda: silent.describe().error_code == TRANSACTIONAL_ID_NOT_FOUND, within=60, what="a later id expires")
    assert sender.describe().transaction_state == "Ongoing"
    assert sender.producer_id in producers(wire, topic.name)
    assert sender.end(COMMIT) == OK
    seen_committed(wire, topic.name, b"a")


def test_a_partition_forgets_a_silent_producer(sender: Transactional, topic: Topic, wire: Wire) -> None:
    sender.init()
    sender.run(topic.name, b"a")
    assert sender.producer_id in producers(wire, topic.name)
    wait_until(
        lambda: sender.producer_id not in producers(wire, topic.name), within=60, what=f"{sender.id} is forgotten"
    )


@pytest.fixture
def at_level(wire: Wire) -> Iterator[Callable[[int], None]]:
    """Sets the level of `transaction.version`, which is 2 again behind the test."""

    def level() -> int:
        response = wire.call("ApiVersions", 3, client_software_name="claims", client_software_version="1")
        return max(
            (one.max_version_level for one in response.finalized_features if one.name == "transaction.version"),
            default=0,
        )

    def set_level(wanted: int) -> None:
        if level() == wanted:
            return
        kind = SAFE_DOWNGRADE if wanted < level() else UPGRADE
        update = {"feature": "transaction.version", "max_version_level": wanted, "upgrade_type": kind}
        response = wire.call("UpdateFeatures", 1, timeout_ms=10_000, feature_updates=[update], validate_only=False)
        assert response.error_code == OK, response
        wait_until(lambda: level() == wanted, within=60, what=f"transaction.version is {wanted}")

    yield set_level
    set_level(2)


@pytest.mark.parametrize("level", [0, 1])
def test_earlier_levels_keep_the_epoch_at_each_end(
    at_level: Callable[[int], None], sender: Transactional, topic: Topic, level: int
) -> None:
    at_level(level)
    sender.init()
    for value, committed in ((b"a", COMMIT), (b"b", ABORT), (b"c", COMMIT)):
        sender.run(topic.name, value, committed=committed)
    assert sender.describe().producer_epoch == 0
    seen_committed(sender.wire, topic.name, b"a", b"c")
    assert [one.epoch for one in see(sender.wire, topic.name).markers] == [0, 0, 0]


@pytest.mark.parametrize("level", [0, 1])
def test_batches_are_verified_at_earlier_levels_too(
    at_level: Callable[[int], None], sender: Transactional, topic: Topic, level: int
) -> None:
    at_level(level)
    sender.init()
    assert sender.write(topic.name, version=10).error_code == INVALID_TXN_STATE
    assert sender.write(topic.name, version=11).error_code == TRANSACTION_ABORTABLE
    assert see(sender.wire, topic.name).batches == []


def test_a_timeout_at_an_earlier_level_fences_too(
    at_level: Callable[[int], None], sender: Transactional, topic: Topic
) -> None:
    at_level(0)
    timed_out(sender, topic.name)
    assert sender.describe().producer_epoch == sender.epoch + 1
    assert sender.end(COMMIT) == PRODUCER_FENCED
    assert sender.write(topic.name).error_code == INVALID_PRODUCER_EPOCH
