"""InitProducerId of transactional ids."""

from __future__ import annotations

import pytest

from pybroker.coordinator.transaction.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
    ProducerIdNeededError,
)
from pybroker.coordinator.transaction.metadata import MAX_EPOCH
from pybroker.coordinator.transaction.states import TransactionState
from tests.support.transactions import FRESH, Coordinator


def test_an_unknown_transactional_id_gets_a_fresh_producer_id() -> None:
    one = Coordinator()
    with pytest.raises(ProducerIdNeededError):
        one.init(fresh_id=None)
    assert one.init() == (FRESH, 0)
    assert one.known().previous_producer_id == FRESH  # as Kafka's record has it


def test_each_producer_gets_the_next_epoch_of_the_same_id() -> None:
    one = Coordinator()
    assert [one.init(), one.init(), one.init(fresh_id=None)] == [(FRESH, 0), (FRESH, 1), (FRESH, 2)]


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_is_not_allowed_is_refused(timeout_ms: int) -> None:
    one = Coordinator()
    with pytest.raises(InvalidTransactionTimeoutError, match=f"is {timeout_ms} ms, and has to be 1 to 900000"):
        one.init(timeout_ms=timeout_ms)
    assert one.records == []


def test_a_producer_that_names_what_it_has_gets_the_next_epoch_and_may_repeat_that() -> None:
    one = Coordinator()
    one.init()
    assert one.init(had=(FRESH, 0)) == (FRESH, 1)
    assert one.init(had=(FRESH, 0)) == (FRESH, 1)
    assert one.init(had=(FRESH, 1)) == (FRESH, 2)


def test_after_another_producer_has_begun_the_one_before_is_fenced() -> None:
    one = Coordinator()
    one.init()
    one.init()
    with pytest.raises(ProducerFencedError):
        one.init(had=(FRESH, 0))
    with pytest.raises(ProducerFencedError):
        one.init(had=(FRESH + 1, 1))


def test_a_transactional_id_that_was_forgotten_is_begun_anew_whatever_the_producer_had() -> None:
    assert Coordinator().init(had=(5, 9)) == (FRESH, 0)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_open_transaction_is_aborted_first(version: int) -> None:
    one = Coordinator(version)
    had = one.init()
    one.add(had)
    assert one.init() is None
    assert (one.known().state, one.known().producer_epoch) == (TransactionState.PREPARE_ABORT, 1)
    with pytest.raises(ConcurrentTransactionsError):
        one.init()
    one.complete()
    assert one.init() == (FRESH, 2)


def test_used_up_epochs_bring_a_new_producer_id() -> None:
    one = Coordinator()
    one.put(producer_epoch=MAX_EPOCH - 1, state=TransactionState.COMPLETE_COMMIT)
    with pytest.raises(ProducerIdNeededError):
        one.init(fresh_id=None)
    assert one.init(fresh_id=2000) == (2000, 0)
    assert one.known().last_producer_epoch == -1


def test_a_producer_that_used_up_its_epochs_gets_the_new_id_and_may_repeat_that() -> None:
    one = Coordinator()
    one.put(producer_epoch=MAX_EPOCH - 1, state=TransactionState.COMPLETE_COMMIT)
    assert one.init(had=(FRESH, MAX_EPOCH - 1), fresh_id=2000) == (2000, 0)
    assert one.init(had=(FRESH, MAX_EPOCH - 1), fresh_id=2001) == (2000, 0)


@pytest.mark.parametrize("version", [0, 2])
def test_fencing_a_producer_with_its_last_epoch_brings_a_new_producer_id(version: int) -> None:
    one = Coordinator(version)
    one.put(producer_epoch=MAX_EPOCH - 1)
    one.add((FRESH, MAX_EPOCH - 1), version=version)
    if version == 2:
        with pytest.raises(ProducerIdNeededError):
            one.init(fresh_id=None)
    assert one.init(fresh_id=2000) is None
    assert one.known().producer_epoch == MAX_EPOCH
    one.complete()
    assert one.init(fresh_id=2001) == ((2000, 1) if version == 2 else (2001, 0))


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_records_have_the_version_of_the_level_in_force(level: int, version: int) -> None:
    one = Coordinator(level)
    one.init()
    assert [record.version for record in one.records] == [version]
