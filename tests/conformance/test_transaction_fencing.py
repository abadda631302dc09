"""Who may go on with a transaction, in raw frames: zombies, epochs, other producers' ids, markers from outside.

A test for each sentence of KIP-98 and KIP-360 about fencing, and of KIP-588 about its codes. Claims hold of Apache
Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`). Nothing that is refused here leaves a record.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.conftest import Topic
from tests.conformance.transactions import (
    ABORT,
    COMMIT,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TXN_STATE,
    OK,
    PRODUCER_FENCED,
    READ_UNCOMMITTED,
    TRANSACTION_COORDINATOR_FENCED,
    UNKNOWN_TOPIC_OR_PARTITION,
    Marker,
    Transactional,
    producers,
    see,
    seen_committed,
    write_marker,
)
from tests.support.wire import Wire

pytestmark = pytest.mark.one_and_three

NOBODYS_PRODUCER_ID = 10**9
NewProducer = Callable[[], Transactional]


@pytest.fixture
def zombie(producer: NewProducer) -> Transactional:
    """An instance whose id a later instance has taken over."""
    first = producer().init()
    Transactional(first.wire, first.id).init()
    return first


# ------------------------------------------------------------------------------------------------------------- zombies


@pytest.mark.parametrize("version", range(4))
def test_a_zombie_adds_no_partition(zombie: Transactional, topic: Topic, version: int) -> None:
    assert zombie.add(topic.name, version=version) == (PRODUCER_FENCED if version >= 2 else INVALID_PRODUCER_EPOCH)


@pytest.mark.parametrize("version", range(5))
def test_a_zombie_adds_no_group(zombie: Transactional, version: int) -> None:
    assert zombie.add_offsets("g", version) == (PRODUCER_FENCED if version >= 2 else INVALID_PRODUCER_EPOCH)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [COMMIT, ABORT])
def test_a_zombie_ends_nothing(zombie: Transactional, version: int, *, committed: bool) -> None:
    heir = Transactional(zombie.wire, zombie.id).init()
    assert zombie.end(committed, version) == (PRODUCER_FENCED if version >= 2 else INVALID_PRODUCER_EPOCH)
    assert heir.describe().transaction_state == "Empty"


@pytest.mark.parametrize("version", [3, 7, 8, 9, 10, 11, 12])
def test_a_zombie_writes_nothing(zombie: Transactional, topic: Topic, version: int) -> None:
    assert zombie.write(topic.name, b"zombie", version=version).error_code == INVALID_PRODUCER_EPOCH
    heir = Transactional(zombie.wire, zombie.id).init()
    heir.run(topic.name, b"heir")
    assert zombie.write(topic.name, b"zombie", version=version).error_code == INVALID_PRODUCER_EPOCH
    assert see(zombie.wire, topic.name, READ_UNCOMMITTED).values == [b"heir"]


def test_a_zombies_open_transaction_takes_no_more_records(producer: NewProducer, topic: Topic) -> None:
    zombie = producer().init()
    zombie.add(topic.name)
    assert zombie.write(topic.name, b"before").error_code == OK
    heir = Transactional(zombie.wire, zombie.id).init()
    for version in (11, 12):
        assert zombie.write(topic.name, b"after", version=version).error_code == INVALID_PRODUCER_EPOCH
    assert zombie.end(COMMIT) == PRODUCER_FENCED
    heir.run(topic.name, b"heir")
    seen_committed(heir.wire, topic.name, b"heir")
    assert see(heir.wire, topic.name, READ_UNCOMMITTED).values == [b"before", b"heir"]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_learn_that_a_producer_is_a_zombie(zombie: Transactional, topic: Topic, version: int) -> None:
    for verify_only in (True, False):
        assert zombie.verify(topic.name, version=version, verify_only=verify_only) == [PRODUCER_FENCED]


def test_an_epoch_that_nobody_was_given_is_fenced(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    sender.run(topic.name, b"a")
    assert sender.add(topic.name, epoch=1) == PRODUCER_FENCED
    assert sender.end(COMMIT, epoch=1) == PRODUCER_FENCED
    for version in (11, 12):
        refused = sender.write(topic.name, version=version, producer_epoch=1, base_sequence=0)
        assert refused.error_code == INVALID_PRODUCER_EPOCH
    assert see(sender.wire, topic.name, READ_UNCOMMITTED).values == [b"a"]


def test_another_producers_id_is_refused(producer: NewProducer, topic: Topic) -> None:
    own, other = producer().init(), producer().init()
    assert own.add(topic.name, producer_id=other.producer_id) == INVALID_PRODUCER_ID_MAPPING
    assert own.add_offsets("g", producer_id=other.producer_id) == INVALID_PRODUCER_ID_MAPPING
    assert own.end(COMMIT, producer_id=other.producer_id) == INVALID_PRODUCER_ID_MAPPING
    assert own.end(COMMIT, 5, producer_id=other.producer_id) == INVALID_PRODUCER_ID_MAPPING
    for version in (4, 5):
        assert own.verify(topic.name, version=version, producer_id=other.producer_id) == [INVALID_PRODUCER_ID_MAPPING]
    for version in (11, 12):
        refused = own.write(topic.name, version=version, producer_id=other.producer_id)
        assert refused.error_code == INVALID_PRODUCER_ID_MAPPING
    assert see(own.wire, topic.name, READ_UNCOMMITTED).batches == []
    assert other.describe().transaction_state == "Empty"


def test_another_producers_open_transaction_takes_nothing_under_ones_own_id(
    producer: NewProducer, topic: Topic
) -> None:
    own, other = producer().init(), producer().init()
    assert other.add(topic.name) == OK
    for version in (11, 12):
        refused = own.write(topic.name, version=version, producer_id=other.producer_id)
        assert refused.error_code == INVALID_PRODUCER_ID_MAPPING
    assert see(own.wire, topic.name, READ_UNCOMMITTED).batches == []
    assert other.write(topic.name, b"own").error_code == OK
    assert other.end(COMMIT) == OK
    seen_committed(own.wire, topic.name, b"own")


# ------------------------------------------------------------------------------------------------------------- KIP-360


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_bumps_its_own_epoch_once(producer: NewProducer, version: int) -> None:
    first = producer().init()
    known = {"producer_id": first.producer_id, "epoch": first.epoch}
    for _ in range(2):  # The second is the same request again, as after a lost answer.
        bumped = first.query_init(version, **known)
        assert (bumped.error_code, bumped.producer_id, bumped.producer_epoch) == (OK, first.producer_id, 1)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_that_was_fenced_does_not_bump(producer: NewProducer, version: int) -> None:
    first = producer().init()
    fenced = PRODUCER_FENCED if version >= 4 else INVALID_PRODUCER_EPOCH
    known = {"producer_id": first.producer_id, "epoch": first.epoch}
    for _ in range(2):
        Transactional(first.wire, first.id).init()
    assert first.query_init(version, **known).error_code == fenced
    assert first.query_init(version, **known | {"epoch": 7}).error_code == fenced
    assert first.query_init(version, producer_id=NOBODYS_PRODUCER_ID, epoch=2).error_code == fenced
    after = first.describe()
    assert (after.producer_id, after.producer_epoch) == (first.producer_id, 2)


def test_a_bump_aborts_what_is_open_and_sequences_begin_anew(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    sender.add(topic.name)
    sender.write(topic.name, b"open")
    before = sender.epoch
    sender.init(producer_id=sender.producer_id, epoch=sender.epoch)
    assert sender.epoch > before
    seen_committed(sender.wire, topic.name)
    sender.run(topic.name, b"new")
    seen_committed(sender.wire, topic.name, b"new")
    assert [(one.producer_epoch, one.base_sequence) for one in see(sender.wire, topic.name).batches][2] == (
        sender.epoch,
        0,
    )


def test_a_new_epoch_begins_at_sequence_zero(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    sender.run(topic.name, b"a")
    sender.init()
    sender.add(topic.name)
    assert sender.write(topic.name, b"x", base_sequence=1).error_code != OK
    assert sender.write(topic.name, b"b", base_sequence=0).error_code == OK
    assert sender.end(COMMIT) == OK
    seen_committed(sender.wire, topic.name, b"a", b"b")


def test_an_id_that_the_coordinator_forgot_gets_a_new_producer_id(producer: NewProducer) -> None:
    given = producer().query_init(producer_id=NOBODYS_PRODUCER_ID, epoch=3)
    assert (given.error_code, given.producer_epoch) == (OK, 0)
    assert given.producer_id != NOBODYS_PRODUCER_ID


def test_producer_id_and_epoch_are_given_together(producer: NewProducer) -> None:
    for known in ({"producer_id": 7}, {"epoch": 4}):
        assert producer().query_init(**known).error_code == INVALID_REQUEST


# ---------------------------------------------------------------------------------------------- markers from outside


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_for_an_unknown_partition_is_refused(
    producer: NewProducer, topic: Topic, wire: Wire, version: int
) -> None:
    who = {"producer_id": producer().init().producer_id, "epoch": 0}
    assert write_marker(wire, "no-such-topic", version=version, **who) == UNKNOWN_TOPIC_OR_PARTITION
    assert write_marker(wire, topic.name, 99, version=version, **who) == UNKNOWN_TOPIC_OR_PARTITION


def test_a_marker_ends_a_hanging_transaction_once(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    sender.add(topic.name)
    sender.write(topic.name, b"a")
    who = {"producer_id": sender.producer_id, "epoch": sender.epoch}
    assert write_marker(wire, topic.name, committed=False, coordinator_epoch=500, **who) == OK
    seen_committed(wire, topic.name)
    marker = Marker(is_commit=False, producer_id=sender.producer_id, epoch=0, coordinator_epoch=500)
    assert see(wire, topic.name).markers == [marker]
    assert producers(wire, topic.name)[sender.producer_id].current_txn_start_offset == -1


def test_an_older_coordinators_marker_is_refused(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    sender.add(topic.name)
    sender.write(topic.name, b"a")
    who = {"producer_id": sender.producer_id, "epoch": sender.epoch}
    assert write_marker(wire, topic.name, coordinator_epoch=500, **who) == OK
    assert write_marker(wire, topic.name, coordinator_epoch=499, **who) == TRANSACTION_COORDINATOR_FENCED
    assert len(see(wire, topic.name).markers) == 1


def test_an_older_epochs_marker_is_refused(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    sender = Transactional(wire, sender.id).init()
    sender.add(topic.name)
    sender.write(topic.name, b"a")
    who = {"producer_id": sender.producer_id, "epoch": 0}
    assert write_marker(wire, topic.name, **who) == INVALID_PRODUCER_EPOCH
    assert see(wire, topic.name, READ_UNCOMMITTED).markers == []
    assert sender.end(ABORT) == OK


def test_a_marker_of_the_second_version_has_a_higher_epoch(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    sender.add(topic.name)
    sender.write(topic.name, b"a")
    who = {"producer_id": sender.producer_id, "version": 2}
    assert write_marker(wire, topic.name, transaction_version=2, epoch=0, **who) == INVALID_PRODUCER_EPOCH
    assert see(wire, topic.name, READ_UNCOMMITTED).markers == []
    assert write_marker(wire, topic.name, transaction_version=2, epoch=1, **who) == OK
    assert [one.epoch for one in see(wire, topic.name).markers] == [1]


def test_what_was_turned_down_leaves_an_open_transaction_as_it_was(producer: NewProducer, topic: Topic) -> None:
    sender, other = producer().init(), producer().init()
    sender.add(topic.name)
    sender.write(topic.name, b"a")
    assert sender.end(COMMIT, epoch=5) == PRODUCER_FENCED
    assert sender.end(COMMIT, producer_id=other.producer_id) == INVALID_PRODUCER_ID_MAPPING
    assert other.end(ABORT) == INVALID_TXN_STATE
    assert sender.describe().transaction_state == "Ongoing"
    assert sender.end(COMMIT) == OK
    seen_committed(sender.wire, topic.name, b"a")
