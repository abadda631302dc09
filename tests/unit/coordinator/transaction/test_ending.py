"""EndTxn, by what state and epoch it comes in: Kafka's tables of both versions, cell by cell."""

from __future__ import annotations

import pytest

from pybroker.coordinator.transaction.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    ProducerFencedError,
    ProducerIdNeededError,
    TransactionError,
)
from pybroker.coordinator.transaction.events import CompleteTransaction, ProducerIdentity
from pybroker.coordinator.transaction.metadata import MAX_EPOCH
from pybroker.coordinator.transaction.states import TransactionState as S
from tests.support.transactions import FRESH, Coordinator

EPOCH = 5
CT, FENCED, STATE = ConcurrentTransactionsError, ProducerFencedError, InvalidTxnStateError
AGAIN, ENDS = "answered as before", "ends"


def outcome(one: Coordinator, epoch: int, *, commit: bool, version: int) -> object:
    """What an EndTxn comes to."""
    before = len(one.records)
    try:
        reply = one.end((FRESH, epoch), commit=commit, version=version)
    except TransactionError as error:
        assert len(one.records) == before
        return type(error)
    ends = len(one.records) > before
    if version == 2:
        assert reply == (FRESH, EPOCH + ends)
    else:
        assert reply == (-1, -1)
    return ENDS if ends else AGAIN


@pytest.mark.parametrize(
    ("state", "abort_again", "abort", "commit_again", "commit"),
    [
        (S.EMPTY, FENCED, ENDS, FENCED, STATE),
        (S.ONGOING, FENCED, ENDS, FENCED, ENDS),
        (S.COMPLETE_COMMIT, STATE, ENDS, AGAIN, STATE),
        (S.COMPLETE_ABORT, AGAIN, ENDS, STATE, STATE),
    ],
)
def test_since_transaction_version_2(
    state: S, abort_again: object, abort: object, commit_again: object, commit: object
) -> None:
    for epoch, commits, expected in (
        (EPOCH - 1, False, abort_again),
        (EPOCH, False, abort),
        (EPOCH - 1, True, commit_again),
        (EPOCH, True, commit),
        (EPOCH + 1, True, FENCED),
        (EPOCH + 1, False, FENCED),
    ):
        one = Coordinator()
        one.put(producer_epoch=EPOCH, state=state, started_ms=one.now)
        assert outcome(one, epoch, commit=commits, version=2) == expected, (epoch, commits)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("identity", [(FRESH, EPOCH - 1), (FRESH, EPOCH), (FRESH, EPOCH + 1), (2000, 0)])
@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_since_transaction_version_2_nobody_is_fenced_before_the_markers(
    state: S, identity: tuple[int, int], commit: bool
) -> None:
    """The producer may have begun its next transaction, by the epoch or the id that the end has given."""
    one = Coordinator()
    one.put(producer_epoch=EPOCH, state=state, started_ms=one.now)
    with pytest.raises(ConcurrentTransactionsError):
        one.end(identity, commit=commit, version=2)


@pytest.mark.parametrize(
    ("state", "abort", "commit"),
    [
        (S.EMPTY, STATE, STATE),
        (S.ONGOING, ENDS, ENDS),
        (S.PREPARE_COMMIT, CT, CT),
        (S.PREPARE_ABORT, CT, CT),
        (S.COMPLETE_COMMIT, STATE, AGAIN),
        (S.COMPLETE_ABORT, AGAIN, STATE),
    ],
)
def test_before_transaction_version_2(state: S, abort: object, commit: object) -> None:
    for epoch, commits, expected in (
        (EPOCH, False, abort),
        (EPOCH, True, commit),
        (EPOCH - 1, True, FENCED),
        (EPOCH + 1, False, FENCED),
    ):
        one = Coordinator()
        one.put(producer_epoch=EPOCH, state=state, started_ms=one.now)
        assert outcome(one, epoch, commit=commits, version=0) == expected, (epoch, commits)


@pytest.mark.parametrize("version", [0, 2])
def test_another_producer_id_or_transactional_id_is_refused(version: int) -> None:
    one = Coordinator()
    with pytest.raises(InvalidProducerIdMappingError):
        one.end((FRESH, 0), version=version)
    one.init()
    with pytest.raises(InvalidProducerIdMappingError):
        one.end((FRESH + 1, 0), version=version)


def test_the_last_epoch_brings_a_new_producer_id_and_the_client_may_repeat_that() -> None:
    one = Coordinator()
    one.put(producer_epoch=MAX_EPOCH - 1)
    one.add((FRESH, MAX_EPOCH - 1))
    with pytest.raises(ProducerIdNeededError):
        one.end((FRESH, MAX_EPOCH - 1))
    assert one.end((FRESH, MAX_EPOCH - 1), fresh_id=2000) == (2000, 0)
    assert one.known().producer_epoch == MAX_EPOCH  # what the markers have
    with pytest.raises(ConcurrentTransactionsError):
        one.end((FRESH, MAX_EPOCH - 1))
    for early in (one.end, one.add, lambda identity: one.init(had=identity)):
        with pytest.raises(ConcurrentTransactionsError):
            early((2000, 0))
    one.complete()
    assert one.end((FRESH, MAX_EPOCH - 1)) == (2000, 0)
    one.add((2000, 0))


def test_a_producer_goes_on_after_each_end() -> None:
    one = Coordinator()
    had = one.init()
    for number in range(4):
        one.add(had)
        had = one.end(had, commit=number % 2 == 0)
        one.complete()
    assert had == (FRESH, 4)
    assert one.known().state is S.COMPLETE_ABORT


def test_a_completion_that_is_known_or_of_another_end_changes_nothing() -> None:
    one = Coordinator()
    one.add(one.init())
    one.query(CompleteTransaction("t", ProducerIdentity(FRESH, 0)))
    assert one.known().state is S.ONGOING
    one.end((FRESH, 0))
    one.query(CompleteTransaction("t", ProducerIdentity(FRESH, 0)))
    assert one.known().state is S.PREPARE_COMMIT
    one.complete()
    before = len(one.records)
    one.query(CompleteTransaction("t", ProducerIdentity(FRESH, 1)))
    one.query(CompleteTransaction("unknown", ProducerIdentity(FRESH, 1)))
    assert (one.known().state, len(one.records)) == (S.COMPLETE_COMMIT, before)
