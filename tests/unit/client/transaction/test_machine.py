"""A transactional producer: every pair of state and trigger, what answers mean, and the identity of the next one."""

from __future__ import annotations

import itertools
from copy import copy
from typing import Any

import pytest

from pybroker.client.transaction import events
from pybroker.client.transaction.decisions import FENCED, Decision, Request, decide
from pybroker.client.transaction.machine import (
    DECISIONS,
    TRANSITIONS,
    Failure,
    Transaction,
    TransactionMachine,
    TransactionState,
    TransactionTrigger,
)
from pybroker.machine.transitions import TransitionError, Transitions
from pybroker.protocol.errors import ErrorCode as E

_S, _T = TransactionState, TransactionTrigger


def drive(machine: TransactionMachine, *happened: Any) -> Decision:
    """Decide and apply, and see that the decision alone changes nothing."""
    decision = Decision.DONE
    for event in happened:
        before = copy(machine.transaction)
        outcome = machine.handle(event)
        assert machine.transaction == before
        machine.apply(outcome.transaction)
        decision = outcome.decision
    return decision


def given(code: int = 0, producer_id: int = 7, epoch: int = 3, level: int = 2) -> events.InitCompleted:
    return events.InitCompleted(code, "words", producer_id, epoch, level)


def ended(code: int = 0, producer_id: int = -1, epoch: int = -1, level: int = 0) -> events.EndCompleted:
    return events.EndCompleted(code, "words", producer_id, epoch, level)


def ready(level: int = 2) -> TransactionMachine:
    machine = TransactionMachine()
    drive(machine, events.InitWanted(), given(level=level))
    return machine


def in_transaction(level: int = 2) -> TransactionMachine:
    machine = ready(level)
    drive(machine, events.Begun())
    return machine


def in_state(state: TransactionState) -> TransactionMachine:
    machine = TransactionMachine()
    failure = Failure(E.NONE, "x") if state in (_S.ABORTABLE, _S.FATAL) else None
    machine.apply(Transaction(state=state, producer_id=7, epoch=3, failure=failure))
    return machine


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(TransactionState, TransactionTrigger)))
def test_every_state_and_trigger(state: TransactionState, trigger: TransactionTrigger) -> None:
    transaction = Transaction(state=state)
    if (state, trigger) in TRANSITIONS:
        transaction.move(trigger)
        assert transaction.state is TRANSITIONS[state, trigger]
    else:
        with pytest.raises(TransitionError):
            transaction.move(trigger)
        assert transaction.state is state


def test_every_state_is_reached_and_nothing_leaves_the_fatal_one() -> None:
    assert not Transitions("x", _S.UNINITIALIZED, TRANSITIONS).unreachable()
    assert {after for (before, _), after in TRANSITIONS.items() if before is _S.FATAL} == {_S.FATAL}
    assert {type(event) for event in (events.Begun(), given(), ended())} <= set(DECISIONS)


CALLS: list[tuple[Any, set[TransactionState]]] = [
    (events.InitWanted(), {_S.UNINITIALIZED, _S.INITIALIZING}),
    (events.Begun(), {_S.READY}),
    (events.Suspended(), {_S.IN_TRANSACTION}),
    (events.Resumed(7, 3, True, True), {_S.UNINITIALIZED}),
    (events.EndWanted(commits=True), {_S.IN_TRANSACTION, _S.COMMITTING}),
    (events.EndWanted(commits=False), {_S.IN_TRANSACTION, _S.ABORTABLE, _S.ABORTING, _S.INITIALIZING}),
]


@pytest.mark.parametrize("state", TransactionState)
@pytest.mark.parametrize(("call", "places"), CALLS, ids=[str(call) for call, _ in CALLS])
def test_calls_out_of_their_order_change_nothing(
    call: Any, places: set[TransactionState], state: TransactionState
) -> None:
    machine = in_state(state)
    if state in places:
        drive(machine, call)
    else:
        with pytest.raises(TransitionError):
            machine.handle(call)
    assert machine.transaction.producer_id == 7


def test_the_end_of_an_implicit_transaction_brings_the_next_epoch() -> None:
    machine = in_transaction()
    assert machine.transaction.is_implicit
    drive(machine, events.EndWanted(commits=True), ended(producer_id=7, epoch=4, level=2))
    assert (machine.transaction.state, machine.transaction.epoch) == (_S.READY, 4)
    # The last epoch of a producer id is followed by another id.
    drive(machine, events.Begun(), events.EndWanted(commits=False), ended(producer_id=8, epoch=0, level=2))
    assert (machine.transaction.producer_id, machine.transaction.epoch) == (8, 0)


def test_without_the_feature_the_epoch_stays_unless_sequence_numbers_are_lost() -> None:
    machine = in_transaction(level=0)
    drive(machine, events.EndWanted(commits=True), ended())
    assert (machine.transaction.state, machine.transaction.epoch) == (_S.READY, 3)
    drive(machine, events.Begun(), events.RecordsFailed(E.MESSAGE_TOO_LARGE, "too large", False, True))
    drive(machine, events.EndWanted(commits=False), ended())
    assert (machine.transaction.state, machine.transaction.needs_epoch) == (_S.INITIALIZING, True)
    drive(machine, given(epoch=4, level=0))
    assert (machine.transaction.state, machine.transaction.epoch) == (_S.READY, 4)
    assert not machine.transaction.needs_epoch


def test_the_feature_level_counts_from_the_next_transaction_on() -> None:
    machine = in_transaction(level=0)
    drive(machine, events.EndWanted(commits=True), ended(level=2))
    assert not machine.transaction.is_implicit
    drive(machine, events.Begun())
    assert machine.transaction.is_implicit


def test_a_failed_transaction_can_only_be_aborted() -> None:
    machine = in_transaction()
    assert drive(machine, events.RecordsFailed(E.NONE, "late", False, False)) is Decision.ABORTABLE
    with pytest.raises(TransitionError):
        machine.handle(events.EndWanted(commits=True))
    drive(machine, events.EndWanted(commits=False), ended(producer_id=7, epoch=4, level=2))
    assert (machine.transaction.state, machine.transaction.failure) == (_S.READY, None)


def test_the_first_failure_is_kept_and_a_fatal_one_replaces_it() -> None:
    machine = in_transaction()
    drive(machine, events.RecordsFailed(E.MESSAGE_TOO_LARGE, "first", False, False))
    drive(machine, events.RecordsFailed(E.CORRUPT_MESSAGE, "second", False, True))
    assert machine.transaction.failure == Failure(E.MESSAGE_TOO_LARGE, "first")
    drive(machine, events.RecordsFailed(E.PRODUCER_FENCED, "third", True, False))
    assert (machine.transaction.state, machine.transaction.failure) == (_S.FATAL, Failure(E.PRODUCER_FENCED, "third"))
    drive(machine, events.RecordsFailed(E.CORRUPT_MESSAGE, "fourth", False, False))
    assert machine.transaction.failure == Failure(E.PRODUCER_FENCED, "third")


def test_what_was_not_answered_may_be_in_the_transaction() -> None:
    machine = in_transaction(level=0)
    drive(machine, events.Unanswered("nobody answered"))
    assert (machine.transaction.state, machine.transaction.needs_epoch) == (_S.ABORTABLE, True)
    assert not machine.transaction.is_known
    implicit = in_transaction()
    drive(implicit, events.Unanswered("nobody answered"))
    assert implicit.transaction.is_known


@pytest.mark.parametrize("code", [E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.CONCURRENT_TRANSACTIONS])
def test_what_may_pass_changes_nothing(code: E) -> None:
    for machine, event in (
        (in_state(_S.INITIALIZING), given(code)),
        (in_transaction(), events.Completed(Request.ADD_PARTITIONS, code, "words")),
        (in_state(_S.COMMITTING), ended(code)),
    ):
        before = copy(machine.transaction)
        assert drive(machine, event) in (Decision.AGAIN, Decision.SEARCH)
        assert machine.transaction == before


@pytest.mark.parametrize("code", sorted(FENCED))
def test_a_fenced_producer_is_at_its_end_whatever_it_asked(code: int) -> None:
    for request in Request:
        assert decide(request, code) is Decision.FATAL
    for machine, event in (
        (in_state(_S.INITIALIZING), given(code)),
        (in_transaction(), events.Completed(Request.COMMIT_OFFSETS, code, "words")),
        (in_state(_S.COMMITTING), ended(code)),
        (in_state(_S.ABORTING), ended(code)),
    ):
        assert drive(machine, event) is Decision.FATAL
        assert machine.transaction.state is _S.FATAL


@pytest.mark.parametrize(
    ("request_", "code", "decision"),
    [
        (Request.ADD_PARTITIONS, E.TOPIC_AUTHORIZATION_FAILED, Decision.ABORTABLE),
        (Request.ADD_PARTITIONS, E.UNKNOWN_TOPIC_OR_PARTITION, Decision.AGAIN),
        (Request.ADD_PARTITIONS, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Decision.FATAL),
        (Request.ADD_OFFSETS, E.GROUP_AUTHORIZATION_FAILED, Decision.ABORTABLE),
        (Request.COMMIT_OFFSETS, E.ILLEGAL_GENERATION, Decision.ABORTABLE),
        (Request.COMMIT_OFFSETS, E.UNKNOWN_MEMBER_ID, Decision.ABORTABLE),
        (Request.COMMIT_OFFSETS, E.STALE_MEMBER_EPOCH, Decision.ABORTABLE),
        (Request.END, E.TRANSACTION_ABORTABLE, Decision.ABORTABLE),
        (Request.END, E.INVALID_TXN_STATE, Decision.FATAL),
        (Request.END, E.UNKNOWN_PRODUCER_ID, Decision.NEW_EPOCH),
        (Request.INIT_PRODUCER_ID, E.INVALID_TRANSACTION_TIMEOUT, Decision.FATAL),
    ],
)
def test_answers_mean_what_they_mean_to_kafkas_client(request_: Request, code: E, decision: Decision) -> None:
    assert decide(request_, code) is decision


def test_a_refused_commit_leaves_an_abort_and_a_refused_abort_leaves_nothing() -> None:
    committing = in_state(_S.COMMITTING)
    assert drive(committing, ended(E.TRANSACTION_ABORTABLE)) is Decision.ABORTABLE
    assert committing.transaction.state is _S.ABORTABLE
    aborting = in_state(_S.ABORTING)
    assert drive(aborting, ended(E.TRANSACTION_ABORTABLE)) is Decision.FATAL
