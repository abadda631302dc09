"""Transactions that were open for too long, and transactional ids that were silent for too long."""

from __future__ import annotations

from pybroker.coordinator.transaction.events import AbortTimedOut, ExpireTransactionalIds
from pybroker.coordinator.transaction.metadata import MAX_EPOCH
from pybroker.coordinator.transaction.overdue import MOST_AT_ONCE, NEVER_MS
from pybroker.coordinator.transaction.states import TransactionState
from tests.support.transactions import FRESH, Coordinator


def test_a_transaction_is_aborted_once_it_was_open_for_longer_than_its_timeout() -> None:
    one = Coordinator()
    one.add(one.init(timeout_ms=100))
    one.now += 100
    assert one.query(AbortTimedOut()) == ([], [], False)
    one.now += 1
    assert one.query(AbortTimedOut()) == (["t"], [], False)
    assert (one.known().state, one.known().producer_epoch) == (TransactionState.PREPARE_ABORT, 1)
    assert one.query(AbortTimedOut()) == ([], [], False)


def test_what_is_not_open_is_never_open_for_too_long() -> None:
    one = Coordinator()
    had = one.init(timeout_ms=1)
    one.now += 10
    assert one.query(AbortTimedOut()).aborted == []
    one.add(had)
    one.end(had)
    one.now += 10
    assert one.query(AbortTimedOut()).aborted == []
    one.put(state=TransactionState.ONGOING, timeout_ms=NEVER_MS)
    one.now += NEVER_MS * 2
    assert one.query(AbortTimedOut()).aborted == []


def test_a_producer_with_its_last_epoch_is_fenced_with_a_fresh_producer_id() -> None:
    one = Coordinator()
    one.put(producer_epoch=MAX_EPOCH - 1, timeout_ms=100)
    one.add((FRESH, MAX_EPOCH - 1))
    one.now += 101
    assert one.query(AbortTimedOut()) == ([], ["t"], False)
    assert one.query(AbortTimedOut((("t", 2000),))) == (["t"], [], False)
    one.complete()
    assert (one.known().producer_id, one.known().producer_epoch) == (2000, 0)


def test_many_are_aborted_some_at_a_time() -> None:
    one = Coordinator()
    one.add(one.init(timeout_ms=1))
    for number in range(MOST_AT_ONCE):
        one.machine.state.put(f"t{number}", one.known())
    one.now += 2
    found = one.query(AbortTimedOut())
    assert (len(found.aborted), found.are_more) == (MOST_AT_ONCE, True)
    found = one.query(AbortTimedOut())
    assert (len(found.aborted), found.are_more) == (1, False)


def test_a_transactional_id_is_forgotten_when_it_has_had_no_transaction_for_long() -> None:
    one = Coordinator(id_expiration_ms=1000, expiration_interval_ms=50)
    had = one.init()
    one.now += 999
    outcome = one.machine.handle(ExpireTransactionalIds(), one.now)
    assert (outcome.records, [timer.deadline_ms for timer in outcome.timers]) == ((), [one.now + 50])
    one.now += 1
    one.query(ExpireTransactionalIds())
    assert one.machine.entries() == 0
    assert one.init(had=had, fresh_id=2000) == (2000, 0)


def test_an_open_or_prepared_transaction_keeps_its_transactional_id() -> None:
    one = Coordinator(id_expiration_ms=1000)
    had = one.init()
    one.add(had)
    one.now += 10_000
    one.query(ExpireTransactionalIds())
    one.end(had)
    one.now += 10_000
    one.query(ExpireTransactionalIds())
    assert one.machine.entries() == 1


def test_many_are_forgotten_some_at_a_time() -> None:
    one = Coordinator(id_expiration_ms=1000)
    one.init()
    for number in range(MOST_AT_ONCE):
        one.machine.state.put(f"t{number}", one.known())
    one.now += 1000
    outcome = one.machine.handle(ExpireTransactionalIds(), one.now)
    assert (len(outcome.records), outcome.timers[0].deadline_ms) == (MOST_AT_ONCE, one.now)
