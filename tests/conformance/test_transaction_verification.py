"""KIP-890 in raw frames: no batch outside of its transaction, an epoch for each transaction, and what KIP-664 shows.

Both halves: brokers verify the batches of clients that add partitions themselves, and add those of clients that do
not. Claims hold of Apache Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.conformance.conftest import Topic
from tests.conformance.transactions import (
    ABORT,
    COMMIT,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OK,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PRODUCER_FENCED,
    READ_UNCOMMITTED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
    Transactional,
    producers,
    see,
    seen_committed,
)
from tests.support.batches import TRANSACTIONAL, batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce, produced, request

pytestmark = pytest.mark.one_and_three

INVALID_RECORD = 87
INVALID_REGULAR_EXPRESSION = 128
INIT_PRODUCER_ID, WRITE_TXN_MARKERS = 22, 27
NewProducer = Callable[[], Transactional]


def test_brokers_say_that_transactions_have_their_second_version(wire: Wire) -> None:
    response = wire.call("ApiVersions", 3, client_software_name="claims", client_software_version="1")
    levels = {one.name: one.max_version_level for one in response.finalized_features}
    assert levels.get("transaction.version") == 2
    served = {one.api_key: one.max_version for one in wire.query(request("ApiVersions", 0)).api_keys}
    keys = (0, 22, 24, 25, 26, 27, 28, 61, 65, 66)
    assert {key: served[key] for key in keys} == {
        0: 13,
        22: 5,
        24: 5,
        25: 4,
        26: 5,
        27: 2,
        28: 5,
        61: 0,
        65: 0,
        66: 2,
    }


# ------------------------------------------------------------------------------------------ clients that add partitions


@pytest.mark.parametrize("version", [3, 7, 8, 9, 10, 11])
def test_a_batch_before_its_transaction_is_refused(producer: NewProducer, topic: Topic, version: int) -> None:
    refused = TRANSACTION_ABORTABLE if version >= 11 else INVALID_TXN_STATE
    sender = producer().init()
    assert sender.write(topic.name, version=version).error_code == refused
    assert see(sender.wire, topic.name, READ_UNCOMMITTED).batches == []
    assert sender.describe().transaction_state == "Empty"


@pytest.mark.parametrize("version", [3, 7, 8, 9, 10, 11])
def test_a_batch_for_a_partition_that_was_not_added_is_refused(
    producer: NewProducer, create: Callable[..., Topic], version: int
) -> None:
    topic, sender = create(partitions=2), producer().init()
    refused = TRANSACTION_ABORTABLE if version >= 11 else INVALID_TXN_STATE
    sender.add(topic.name, 0)
    assert sender.write(topic.name, partition=1, version=version).error_code == refused
    assert sender.write(topic.name, b"a", partition=0, version=version).error_code == OK
    assert sender.end(COMMIT) == OK
    assert see(sender.wire, topic.name, READ_UNCOMMITTED, partition=1).batches == []


def test_a_batch_that_comes_after_the_marker_is_refused(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    for committed in (COMMIT, ABORT):
        sender.run(topic.name, b"a", committed=committed)
        assert sender.write(topic.name, b"late").error_code == TRANSACTION_ABORTABLE
    seen = see(sender.wire, topic.name)
    assert seen.last_stable_offset == seen.high_watermark == 4, "no transaction hangs"


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_ask_whether_partitions_are_in_a_transaction(
    producer: NewProducer, create: Callable[..., Topic], version: int
) -> None:
    topic, sender = create(partitions=2), producer().init()
    sender.add(topic.name, 0)
    assert sender.verify(topic.name, 0, 1, version=version) == [OK, TRANSACTION_ABORTABLE]
    assert sender.describe().topics[0].partitions == [0], "to verify adds nothing"
    assert sender.end(ABORT) == OK
    sender.wait_for("CompleteAbort")
    assert sender.verify(topic.name, 0, version=version) == [TRANSACTION_ABORTABLE]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_partitions_for_their_producers(
    producer: NewProducer, create: Callable[..., Topic], version: int
) -> None:
    topic, sender = create(partitions=3), producer().init()
    assert sender.verify(topic.name, 0, 2, version=version, verify_only=False) == [OK, OK]
    assert [(one.topic, sorted(one.partitions)) for one in sender.describe().topics] == [(topic.name, [0, 2])]
    unknown = sender.verify("no-such-topic", 0, version=version, verify_only=False)
    assert unknown == [UNKNOWN_TOPIC_OR_PARTITION]
    assert sender.end(ABORT) == OK


def test_brokers_ask_about_many_transactions_at_once(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    open_one, empty_one = producer().init(), producer().init()
    open_one.add(topic.name)
    requested = [
        {
            "transactional_id": one.id,
            "producer_id": one.producer_id,
            "producer_epoch": one.epoch,
            "verify_only": True,
            "topics": [{"name": topic.name, "partitions": [0]}],
        }
        for one in (open_one, empty_one)
    ]
    response = wire.call("AddPartitionsToTxn", 5, transactions=requested)
    codes = {
        one.transactional_id: one.topic_results[0].results_by_partition[0].partition_error_code
        for one in response.results_by_transaction
    }
    assert codes == {open_one.id: OK, empty_one.id: TRANSACTION_ABORTABLE}
    open_one.end(ABORT)


# ---------------------------------------------------------------------------------------- an epoch for each transaction


def test_a_batch_adds_its_partition_and_every_end_bumps_the_epoch(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    for number, committed in enumerate((COMMIT, ABORT, COMMIT)):
        assert sender.epoch == number
        assert sender.write(topic.name, b"%d" % number, version=12).error_code == OK
        begun = sender.describe()
        assert begun.transaction_state == "Ongoing"
        assert [(one.topic, one.partitions) for one in begun.topics] == [(topic.name, [0])]
        assert sender.end(committed, 5) == OK
    seen_committed(sender.wire, topic.name, b"0", b"2")
    seen = see(sender.wire, topic.name)
    assert [(one.is_commit, one.epoch) for one in seen.markers] == [(True, 1), (False, 2), (True, 3)]
    assert [one.base_sequence for one in seen.batches] == [0, -1, 0, -1, 0, -1]
    state = producers(sender.wire, topic.name)[sender.producer_id]
    assert (state.producer_epoch, state.last_sequence) == (3, -1)


def test_no_batch_is_refused_for_the_marker_of_the_last_transaction(producer: NewProducer, topic: Topic) -> None:
    """The next batch comes at once, while the last transaction's marker is on its way to the same partition."""
    sender = producer().init()
    for number in range(200):
        assert sender.write(topic.name, b"%d" % number, version=12).error_code == OK, number
        assert sender.end(number % 3 != 1, 5) == OK
    seen_committed(sender.wire, topic.name, *(b"%d" % number for number in range(200) if number % 3 != 1))


def test_an_end_that_is_sent_again_gets_the_same_answer(producer: NewProducer, topic: Topic) -> None:
    for committed in (COMMIT, ABORT):
        sender = producer().init()
        sender.write(topic.name, version=12)
        assert sender.end(committed, 5) == OK
        again = sender.query_end(committed, 5, epoch=0)
        assert (again.error_code, again.producer_id, again.producer_epoch) == (OK, sender.producer_id, 1)
        sender.wait_for("CompleteCommit" if committed else "CompleteAbort")
        again = sender.query_end(committed, 5, epoch=0)
        assert (again.error_code, again.producer_id, again.producer_epoch) == (OK, sender.producer_id, 1)
        assert sender.query_end(not committed, 5, epoch=0).error_code == INVALID_TXN_STATE
        assert sender.query_end(committed, 4, epoch=0).error_code == PRODUCER_FENCED


@pytest.mark.parametrize("version", [11, 12])
def test_a_late_batch_of_the_last_transaction_is_fenced(
    producer: NewProducer, create: Callable[..., Topic], version: int
) -> None:
    topic, sender = create(partitions=2), producer().init()
    sender.write(topic.name, b"a", version=12)
    assert sender.end(COMMIT, 5) == OK
    sender.wait_for("CompleteCommit")
    for partition, sequence in ((0, 1), (1, 0)):
        late = sender.write(
            topic.name, b"late", version=version, partition=partition, producer_epoch=0, base_sequence=sequence
        )
        assert late.error_code == INVALID_PRODUCER_EPOCH
    assert sender.add(topic.name, epoch=0) == PRODUCER_FENCED
    assert see(sender.wire, topic.name, READ_UNCOMMITTED).values == [b"a"]
    assert see(sender.wire, topic.name, READ_UNCOMMITTED, partition=1).values == []


def test_a_first_batch_begins_at_sequence_zero(producer: NewProducer, create: Callable[..., Topic]) -> None:
    topic, sender = create(partitions=2), producer().init()
    sender.write(topic.name, b"a", version=12)
    assert sender.end(COMMIT, 5) == OK
    for partition in (0, 1):
        refused = sender.write(topic.name, b"x", version=12, partition=partition, base_sequence=3)
        assert refused.error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert see(sender.wire, topic.name, READ_UNCOMMITTED).values == [b"a"]
    assert sender.end(ABORT, 5) == OK


def test_an_abort_without_a_transaction_bumps_and_a_commit_does_not(producer: NewProducer) -> None:
    sender = producer().init()
    for epoch in range(2):
        assert sender.query_end(COMMIT, 5).error_code == INVALID_TXN_STATE
        response = sender.query_end(ABORT, 5, epoch=epoch)
        assert (response.error_code, response.producer_id, response.producer_epoch) == (
            OK,
            sender.producer_id,
            epoch + 1,
        )
        sender.epoch = epoch + 1


def test_what_a_client_added_may_end_with_a_bump(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    sender.add(topic.name)
    sender.write(topic.name, b"a", version=11)
    assert (sender.end(COMMIT, 5), sender.epoch) == (OK, 1)
    sender.write(topic.name, b"b", version=12)
    assert (sender.end(COMMIT, 4), sender.epoch) == (OK, 1)
    sender.wait_for("CompleteCommit")
    sender.add(topic.name)
    assert sender.write(topic.name, b"c", version=11).error_code == OK
    assert sender.end(ABORT, 4) == OK
    seen_committed(sender.wire, topic.name, b"a", b"b")


def test_a_batch_for_a_partition_that_is_not_there_begins_nothing(producer: NewProducer) -> None:
    sender = producer().init()
    assert sender.write("no-such-topic", version=12).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert sender.describe().transaction_state == "Empty"


@pytest.mark.parametrize("harm", [lambda batch: batch[:-3], lambda batch: batch * 2], ids=["cut", "two"])
def test_what_is_not_one_whole_batch_begins_nothing(
    producer: NewProducer, topic: Topic, harm: Callable[[bytes], bytes]
) -> None:
    sender = producer().init()
    who = {"producer_id": sender.producer_id, "producer_epoch": sender.epoch, "base_sequence": 0}
    harmed = produce(topic.name, harm(batch_of(b"x", attributes=TRANSACTIONAL, **who)), version=12)
    harmed.transactional_id = sender.id
    assert produced(sender.wire.query(harmed)).error_code == INVALID_RECORD
    assert sender.describe().transaction_state == "Empty"


# ------------------------------------------------------------------------------------------------------- what is shown


def listed(wire: Wire, version: int = 2, **filters: Any) -> list[tuple[str, str]]:
    made: dict[str, Any] = {"state_filters": [], "producer_id_filters": []}
    if version >= 1:
        made["duration_filter"] = -1
    if version >= 2:
        made["transactional_id_pattern"] = None
    response = wire.call("ListTransactions", version, **made | filters)
    assert response.error_code == OK, response
    return [(one.transactional_id, one.transaction_state) for one in response.transaction_states]


@pytest.mark.parametrize("version", range(3))
def test_transactions_are_listed_by_state_and_producer_id(producer: NewProducer, topic: Topic, version: int) -> None:
    sender = producer().init()
    mine: dict[str, Any] = {"producer_id_filters": [sender.producer_id]}
    assert listed(sender.wire, version, **mine) == [(sender.id, "Empty")]
    assert listed(sender.wire, version, state_filters=["Ongoing"], **mine) == []
    sender.add(topic.name)
    assert listed(sender.wire, version, state_filters=["Ongoing"], **mine) == [(sender.id, "Ongoing")]
    assert (sender.id, "Ongoing") in listed(sender.wire, version)
    sender.end(ABORT)


def test_a_state_that_nobody_knows_is_named(wire: Wire, producer: NewProducer) -> None:
    producer()
    response = wire.call("ListTransactions", 0, state_filters=["Ongoing", "Nonsense"], producer_id_filters=[])
    assert (response.error_code, response.unknown_state_filters) == (OK, ["Nonsense"])


def test_transactions_are_listed_by_pattern(producer: NewProducer, wire: Wire) -> None:
    sender = producer().init()
    assert listed(wire, transactional_id_pattern=f"{sender.id[:-1]}[{sender.id[-1]}]") == [(sender.id, "Empty")]
    assert listed(wire, transactional_id_pattern=sender.id[1:]) == [], "the whole id has to match"
    made = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1, "transactional_id_pattern": "(("}
    assert wire.call("ListTransactions", 2, **made).error_code == INVALID_REGULAR_EXPRESSION


def test_transactions_are_listed_by_their_age(producer: NewProducer, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    sender.add(topic.name)
    mine: dict[str, Any] = {"producer_id_filters": [sender.producer_id]}
    is_older = partial(listed, wire, duration_filter=0, **mine)
    wait_until(lambda: is_older() == [(sender.id, "Ongoing")], within=60, what="it is older than 0 ms")
    assert listed(wire, duration_filter=1_000_000, **mine) == []
    sender.end(ABORT)


def test_producers_of_partitions_that_are_not_there_are_not_described(wire: Wire, topic: Topic) -> None:
    requested = [{"name": "no-such-topic", "partition_indexes": [0]}, {"name": topic.name, "partition_indexes": [9]}]
    response = wire.call("DescribeProducers", 0, topics=requested)
    assert [one.partitions[0].error_code for one in response.topics] == [UNKNOWN_TOPIC_OR_PARTITION] * 2


def test_ids_that_are_not_there_are_not_described(wire: Wire, producer: NewProducer) -> None:
    known, unknown = producer().init(), producer()
    response = wire.call("DescribeTransactions", 0, transactional_ids=[known.id, unknown.id])
    codes = {one.transactional_id: one.error_code for one in response.transaction_states}
    assert codes == {known.id: OK, unknown.id: TRANSACTIONAL_ID_NOT_FOUND}
