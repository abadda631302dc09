"""Transactions in raw frames, a test for each sentence of KIP-98: what is written, who sees it, and when.

Claims hold of Apache Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.conftest import Server, Topic
from tests.conformance.transactions import (
    ABORT,
    COMMIT,
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    NO_TIMESTAMP,
    OK,
    OPERATION_NOT_ATTEMPTED,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
    Marker,
    Transactional,
    producers,
    see,
    seen_committed,
    stable_end,
)
from tests.support.batches import TRANSACTIONAL, batch_of
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.one_and_three

INVALID_RECORD = 87
NewProducer = Callable[[], Transactional]


# ------------------------------------------------------------------------------------------- ids and their coordinator


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_finds_the_coordinator_of_an_id(
    wire: Wire, producer: NewProducer, server: Server, version: int
) -> None:
    name = producer().id
    requested = {"key": name} if version < 4 else {"coordinator_keys": [name]}
    response = wire.call("FindCoordinator", version, key_type=1, **requested)
    found = response if version < 4 else response.coordinators[0]
    assert (found.error_code, found.node_id) == (OK, server.brokers[0])
    assert f"{found.host}:{found.port}" == server.bootstrap_servers


@pytest.mark.parametrize("version", range(6))
def test_an_id_keeps_its_producer_id_and_gets_a_higher_epoch_each_time(producer: NewProducer, version: int) -> None:
    first = producer().init(version)
    again = Transactional(first.wire, first.id).init(version)
    assert first.epoch == 0
    assert (again.producer_id, again.epoch) == (first.producer_id, 1)


def test_ids_have_producer_ids_of_their_own(producer: NewProducer, wire: Wire) -> None:
    without = wire.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1)
    found = {producer().init().producer_id, producer().init().producer_id, without.producer_id}
    assert len(found) == 3


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_outside_of_the_brokers_range_is_refused(producer: NewProducer, timeout_ms: int) -> None:
    refused = producer().query_init(timeout_ms=timeout_ms)
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (INVALID_TRANSACTION_TIMEOUT, -1, -1)


def test_the_longest_timeout_is_the_brokers(producer: NewProducer) -> None:
    assert producer().init(timeout_ms=900_000).describe().transaction_timeout_ms == 900_000


def test_an_empty_id_is_refused(wire: Wire, producer: NewProducer) -> None:
    producer()
    assert Transactional(wire, "").query_init().error_code == INVALID_REQUEST


def test_an_id_that_was_never_initialised_has_no_transaction(producer: NewProducer, topic: Topic) -> None:
    unknown = producer()
    assert unknown.add(topic.name) == INVALID_PRODUCER_ID_MAPPING
    assert unknown.add_offsets("g") == INVALID_PRODUCER_ID_MAPPING
    assert unknown.end(COMMIT) == INVALID_PRODUCER_ID_MAPPING
    assert unknown.describe().error_code == TRANSACTIONAL_ID_NOT_FOUND


# ------------------------------------------------------------------------------------------------- a transaction's life


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions_and_begins(producer: NewProducer, topic: Topic, version: int) -> None:
    sender = producer().init()
    before = sender.describe()
    assert (before.transaction_state, before.transaction_start_time_ms) == ("Empty", NO_TIMESTAMP)
    assert sender.add(topic.name, version=version) == OK
    begun = sender.describe()
    assert (begun.transaction_state, begun.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert begun.transaction_start_time_ms > 0
    assert [(one.topic, one.partitions) for one in begun.topics] == [(topic.name, [0])]
    assert sender.end(ABORT) == OK


def test_a_partition_may_be_added_twice(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    assert [sender.add(topic.name), sender.add(topic.name)] == [OK, OK]
    assert sender.end(ABORT) == OK


def test_one_unknown_partition_keeps_all_out(producer: NewProducer, create: Callable[..., Topic]) -> None:
    topic, sender = create(partitions=2), producer().init()
    found = sender.query_add([{"name": topic.name, "partitions": [0, 7]}, {"name": "no-such-topic", "partitions": [1]}])
    codes = {
        (one.name, part.partition_index): part.partition_error_code
        for one in found
        for part in one.results_by_partition
    }
    assert codes == {
        (topic.name, 0): OPERATION_NOT_ATTEMPTED,
        (topic.name, 7): UNKNOWN_TOPIC_OR_PARTITION,
        ("no-such-topic", 1): UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert sender.describe().transaction_state == "Empty"


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("committed", [COMMIT, ABORT])
def test_every_version_ends_a_transaction(
    producer: NewProducer, topic: Topic, version: int, *, committed: bool
) -> None:
    sender = producer().init()
    sender.add(topic.name)
    assert sender.write(topic.name, b"a").error_code == OK
    assert sender.end(committed, version) == OK
    sender.wait_for("CompleteCommit" if committed else "CompleteAbort")
    assert sender.describe().topics == []
    seen_committed(sender.wire, topic.name, *([b"a"] if committed else []))
    assert see(sender.wire, topic.name, READ_UNCOMMITTED).values == [b"a"]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("committed", [COMMIT, ABORT])
def test_no_transaction_is_ended_before_one_began(producer: NewProducer, version: int, *, committed: bool) -> None:
    sender = producer().init()
    assert sender.end(committed, version) == INVALID_TXN_STATE
    assert sender.describe().transaction_state == "Empty"


def test_an_end_may_be_repeated_and_not_turned_round(producer: NewProducer, topic: Topic) -> None:
    for committed in (COMMIT, ABORT):
        sender = producer().init()
        sender.run(topic.name, b"a", committed=committed)
        assert sender.end(committed) == OK
        assert sender.end(not committed) == INVALID_TXN_STATE


def test_a_transaction_without_records_ends_and_leaves_a_marker(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    sender.add(topic.name)
    assert sender.end(COMMIT) == OK
    sender.wait_for("CompleteCommit")
    assert [one.is_commit for one in see(sender.wire, topic.name).markers] == [True]


def test_one_transaction_after_the_other(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    for number in range(6):
        sender.run(topic.name, b"%d" % number, committed=number % 3 != 1)
    seen = see(sender.wire, topic.name)
    assert seen.committed == [b"0", b"2", b"3", b"5"]
    assert [one.is_commit for one in seen.markers] == [True, False, True, True, False, True]
    assert seen.aborted == [(sender.producer_id, 2), (sender.producer_id, 8)]


def test_all_partitions_of_a_transaction_are_committed(
    producer: NewProducer, create: Callable[..., Topic], topic_name: str
) -> None:
    first, second, sender = create(f"{topic_name}-of-two", partitions=2), create(), producer().init()
    places = [(first.name, 0), (first.name, 1), (second.name, 0)]
    sender.add(first.name, 0, 1)
    sender.add(second.name)
    for name, partition in places:
        assert sender.write(name, b"a", partition=partition).error_code == OK
    for name, partition in places:
        assert see(sender.wire, name, partition=partition).values == []
    assert sender.end(COMMIT) == OK
    for name, partition in places:
        seen_committed(sender.wire, name, b"a", partition=partition)


def test_a_new_instance_ends_what_the_last_one_left_open(producer: NewProducer, topic: Topic) -> None:
    left = producer().init()
    left.add(topic.name)
    left.write(topic.name, b"left")
    made = {"transactional_id": left.id, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
    assert left.wire.call("InitProducerId", 4, **made).error_code == CONCURRENT_TRANSACTIONS
    heir = Transactional(left.wire, left.id).init()
    assert (heir.producer_id, heir.epoch) == (left.producer_id, left.epoch + 2)
    seen_committed(heir.wire, topic.name)
    assert [(one.is_commit, one.epoch) for one in see(heir.wire, topic.name).markers] == [(False, left.epoch + 1)]
    heir.run(topic.name, b"mine")
    seen_committed(heir.wire, topic.name, b"mine")


# ----------------------------------------------------------------------------------------------------------- the reader


def test_a_marker_is_a_control_batch_of_one_record(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    sender.run(topic.name, b"a")
    sender.run(topic.name, b"b", committed=False)
    seen = see(sender.wire, topic.name, READ_UNCOMMITTED)
    assert [one.attributes for one in seen.batches] == [16, 48, 16, 48]
    assert [one.base_sequence for one in seen.batches] == [0, -1, 1, -1]
    assert all(batch.crc_holds for batch in seen.batches)
    (commit, abort), epoch = seen.markers, seen.markers[0].coordinator_epoch
    assert epoch >= 0
    assert commit == Marker(is_commit=True, producer_id=sender.producer_id, epoch=0, coordinator_epoch=epoch)
    assert abort == Marker(is_commit=False, producer_id=sender.producer_id, epoch=0, coordinator_epoch=epoch)


def test_readers_of_committed_records_stop_at_the_first_open_transaction(
    producer: NewProducer, topic: Topic, wire: Wire
) -> None:
    produced(wire.query(produce(topic.name, batch_of(b"0"))))
    early, late = producer().init(), producer().init()
    for one, value in ((early, b"1"), (late, b"2")):
        one.add(topic.name)
        one.write(topic.name, value)
    produced(wire.query(produce(topic.name, batch_of(b"3"))))
    late.end(COMMIT)
    late.wait_for("CompleteCommit")
    seen = see(wire, topic.name)
    assert (seen.committed, seen.last_stable_offset, seen.high_watermark) == ([b"0"], 1, 5)
    assert (stable_end(wire, topic.name), stable_end(wire, topic.name, READ_UNCOMMITTED)) == (1, 5)
    everything = see(wire, topic.name, READ_UNCOMMITTED)
    assert (everything.values, everything.aborted) == ([b"0", b"1", b"2", b"3"], None)
    early.end(ABORT)
    seen_committed(wire, topic.name, b"0", b"2", b"3")
    assert see(wire, topic.name).aborted == [(early.producer_id, 1)]
    assert stable_end(wire, topic.name) == 6


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch_knows_isolation(producer: NewProducer, topic: Topic, wire: Wire, version: int) -> None:
    sender = producer().init()
    sender.run(topic.name, b"a", committed=False)
    named = {"topic_id": topic.id} if version >= 13 else {}
    made = fetch(topic.name, version=version, isolation_level=READ_COMMITTED, **named)
    part = fetched(wire.query(made))
    assert (part.error_code, part.last_stable_offset) == (OK, 2)
    assert [(one.producer_id, one.first_offset) for one in part.aborted_transactions] == [(sender.producer_id, 0)]


def test_aborted_transactions_are_those_of_the_range_that_is_read(
    producer: NewProducer, topic: Topic, wire: Wire
) -> None:
    sender = producer().init()
    for value in (b"a", b"b", b"c"):
        sender.run(topic.name, value, committed=False)
    assert see(wire, topic.name, offset=1).aborted == [(sender.producer_id, first) for first in (0, 2, 4)]
    assert see(wire, topic.name, offset=2).aborted == [(sender.producer_id, first) for first in (2, 4)]
    assert see(wire, topic.name, offset=6).aborted == []


def test_a_waiting_reader_of_committed_records_is_woken_by_the_marker(
    producer: NewProducer, topic: Topic, server: Server
) -> None:
    sender = producer().init()
    sender.add(topic.name)
    sender.write(topic.name, b"a")
    with Wire(server.bootstrap_servers) as reader:
        made = fetch(topic.name, isolation_level=READ_COMMITTED, max_wait_ms=19_000, min_bytes=1)
        waiting = reader.send(made)
        assert sender.end(COMMIT) == OK
        assert fetched(reader.receive(made, waiting)).records


# ------------------------------------------------------------------------------------------------------ what is written


def test_a_batch_that_is_sent_again_is_written_once(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    sender.add(topic.name)
    first = sender.write(topic.name, b"a", b"b")
    again = sender.write(topic.name, b"a", b"b", base_sequence=0)
    assert (again.error_code, again.base_offset) == (OK, first.base_offset)
    sender.end(COMMIT)
    seen_committed(wire, topic.name, b"a", b"b")


@pytest.mark.parametrize("sequence", [0, 1, 3, 5])
@pytest.mark.parametrize("version", [11, 12])
def test_a_gap_of_sequences_is_refused_and_nothing_is_written(
    producer: NewProducer, topic: Topic, wire: Wire, version: int, sequence: int
) -> None:
    sender = producer().init()
    sender.add(topic.name)
    assert sender.write(topic.name, b"a", b"b", version=version).error_code == OK
    refused = sender.write(topic.name, version=version, base_sequence=sequence)
    assert refused.error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert see(wire, topic.name, READ_UNCOMMITTED).values == [b"a", b"b"]
    assert sender.end(ABORT) == OK


def test_a_producer_in_a_transaction_writes_nothing_beside_it(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    sender.add(topic.name)
    sender.write(topic.name, b"a")
    assert sender.write(topic.name, b"beside", attributes=0).error_code == INVALID_TXN_STATE
    assert see(wire, topic.name, READ_UNCOMMITTED).values == [b"a"]
    sender.end(ABORT)


def test_a_transactional_batch_needs_an_id_and_markers_are_brokers_own(
    producer: NewProducer, topic: Topic, wire: Wire
) -> None:
    sender = producer().init()
    sender.add(topic.name)
    nameless = batch_of(
        b"a", attributes=TRANSACTIONAL, producer_id=sender.producer_id, producer_epoch=0, base_sequence=0
    )
    assert produced(wire.query(produce(topic.name, nameless))).error_code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert sender.write(topic.name, attributes=48).error_code == INVALID_RECORD
    assert see(wire, topic.name, READ_UNCOMMITTED).batches == []
    sender.end(ABORT)


def test_describe_producers_says_where_a_transaction_began(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    sender.run(topic.name, b"a")
    done = producers(wire, topic.name)[sender.producer_id]
    assert (done.producer_epoch, done.last_sequence, done.current_txn_start_offset) == (0, 0, -1)
    assert done.coordinator_epoch == see(wire, topic.name).markers[0].coordinator_epoch
    sender.add(topic.name)
    sender.write(topic.name, b"b", b"c")
    begun = producers(wire, topic.name)[sender.producer_id]
    assert (begun.producer_epoch, begun.last_sequence, begun.current_txn_start_offset) == (0, 2, 2)
    assert begun.last_timestamp > 0
    often = [{"name": topic.name, "partition_indexes": [0, 0]}, {"name": topic.name, "partition_indexes": [0]}]
    responded = wire.call("DescribeProducers", 0, topics=often).topics
    assert [[part.partition_index for part in one.partitions] for one in responded] == [[0]]
    sender.end(ABORT)
