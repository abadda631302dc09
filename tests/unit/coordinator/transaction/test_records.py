"""Between what is known of a transactional id and Kafka's record of it."""

from __future__ import annotations

import msgspec
import pytest

from pybroker.coordinator.transaction.metadata import TransactionMetadata
from pybroker.coordinator.transaction.records import build_metadata, build_value, value_version
from pybroker.coordinator.transaction.states import NUMBERS, TransactionState
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.messages.transaction_records.transaction_log import TransactionLogValue

KNOWN = TransactionMetadata(
    producer_id=7,
    previous_producer_id=6,
    next_producer_id=8,
    producer_epoch=3,
    last_producer_epoch=2,
    timeout_ms=1000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({("b", 1), ("a", 2), ("a", 0)}),
    started_ms=10,
    updated_ms=20,
    client_version=2,
)


def test_a_record_has_all_but_the_epoch_before() -> None:
    assert build_metadata(build_value(KNOWN, 1)) == msgspec.structs.replace(KNOWN, last_producer_epoch=-1)


def test_a_record_of_version_0_has_no_other_producer_ids() -> None:
    value = build_value(KNOWN, 0)
    assert (value.previous_producer_id, value.next_producer_id, value.client_transaction_version) == (-1, -1, 0)


def test_partitions_stand_by_topic_in_order() -> None:
    partitions = build_value(KNOWN, 1).transaction_partitions
    assert partitions is not None
    assert [(one.topic, one.partition_ids) for one in partitions] == [("a", [0, 2]), ("b", [1])]


def test_an_empty_transactional_id_has_no_partitions() -> None:
    empty = TransactionMetadata(producer_id=7, producer_epoch=0, timeout_ms=1000, updated_ms=20)
    value = build_value(empty, 1)
    assert value.transaction_partitions is None
    assert build_metadata(value) == msgspec.structs.replace(empty, client_version=0)


@pytest.mark.parametrize(
    "number", [-1, 8, NUMBERS[TransactionState.DEAD], NUMBERS[TransactionState.PREPARE_EPOCH_FENCE]]
)
def test_a_state_that_no_record_can_have_is_refused(number: int) -> None:
    with pytest.raises(MalformedMessage, match=f"the transaction status is {number},"):
        build_metadata(TransactionLogValue(transaction_status=number))


def test_values_are_flexible_from_level_1_on() -> None:
    assert [value_version(level) for level in (0, 1, 2)] == [0, 1, 1]
