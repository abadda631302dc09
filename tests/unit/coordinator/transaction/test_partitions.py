"""What a transaction writes to."""

from __future__ import annotations

import pytest

from pybroker.coordinator.transaction.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    ProducerFencedError,
)
from pybroker.coordinator.transaction.events import AddPartitions, ProducerIdentity, VerifyPartitions
from pybroker.coordinator.transaction.states import TransactionState
from pybroker.protocol.errors import ErrorCode
from tests.support.transactions import FRESH, Coordinator

PARTITIONS = frozenset({("a", 0)})


def test_the_first_partition_begins_a_transaction_and_what_it_has_needs_no_record() -> None:
    one = Coordinator()
    had = one.init()
    one.add(had, 0, 1)
    before = len(one.records)
    one.add(had, 1)
    assert (len(one.records), one.known().state) == (before, TransactionState.ONGOING)
    one.add(had, 2)
    assert one.known().partitions == {("a", 0), ("a", 1), ("a", 2)}


@pytest.mark.parametrize("event", [AddPartitions, VerifyPartitions])
def test_a_wrong_producer_is_refused(event: type) -> None:
    one = Coordinator()
    one.init()
    more = (2,) if event is AddPartitions else ()
    before = len(one.records)
    with pytest.raises(InvalidProducerIdMappingError):
        one.query(event("unknown", ProducerIdentity(FRESH, 0), PARTITIONS, *more))
    with pytest.raises(InvalidProducerIdMappingError):
        one.query(event("t", ProducerIdentity(FRESH + 1, 0), PARTITIONS, *more))
    for epoch in (-1, 1):
        with pytest.raises(ProducerFencedError):
            one.query(event("t", ProducerIdentity(FRESH, epoch), PARTITIONS, *more))
    assert len(one.records) == before


@pytest.mark.parametrize("commit", [True, False])
def test_until_the_markers_are_written_nothing_is_added_or_verified(commit: bool) -> None:
    one = Coordinator()
    one.add(one.init())
    had = one.end((FRESH, 0), commit=commit)
    with pytest.raises(ConcurrentTransactionsError):
        one.add(had)
    with pytest.raises(ConcurrentTransactionsError):
        one.query(VerifyPartitions("t", had, PARTITIONS))
    one.complete()
    one.add(had)
    assert one.known().state is TransactionState.ONGOING


def test_each_partition_is_verified_by_itself() -> None:
    one = Coordinator()
    had = one.init()
    one.add(had, 0)
    requested = frozenset({("a", 0), ("a", 1)})
    assert one.query(VerifyPartitions("t", had, requested)) == {
        ("a", 0): ErrorCode.NONE,
        ("a", 1): ErrorCode.TRANSACTION_ABORTABLE,
    }


def test_a_transaction_that_has_not_begun_has_no_partition() -> None:
    one = Coordinator()
    assert one.query(VerifyPartitions("t", one.init(), PARTITIONS)) == {("a", 0): ErrorCode.TRANSACTION_ABORTABLE}
