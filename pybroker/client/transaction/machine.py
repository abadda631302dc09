"""The state machine of a transactional producer: initialised, in a transaction, committing or aborting, or failed.

Owns the states, their transitions, and the producer id and epoch of the next transaction. Must not know fields of
requests, records or sockets. The states are those of Kafka's `TransactionManager`. The interface is that of
`pybroker.client.membership.machine`: `handle` decides and changes nothing, `apply` changes and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from enum import Enum, auto
from typing import Any, NamedTuple

import msgspec

from pybroker.client.transaction import events
from pybroker.client.transaction.decisions import Decision, Request, decide
from pybroker.machine.transitions import Transitions
from pybroker.protocol.errors import ErrorCode

NO_ID = -1
_LEVEL_WITH_IMPLICIT_PARTITIONS = 2


class TransactionState(Enum):
    """The state of a transactional producer."""

    UNINITIALIZED = auto()
    INITIALIZING = auto()
    """InitProducerId is in flight: for the first identity, or for a new epoch after an abort."""
    READY = auto()
    IN_TRANSACTION = auto()
    COMMITTING = auto()
    ABORTING = auto()
    ABORTABLE = auto()
    """The transaction has failed; only an abort is allowed."""
    SUSPENDED = auto()
    """Another producer of the same transactional id ends the transaction."""
    FATAL = auto()


class TransactionTrigger(Enum):
    """A trigger of a transition."""

    INITIALIZES = auto()
    INITIALIZED = auto()
    BEGINS = auto()
    COMMITS = auto()
    ABORTS = auto()
    ENDED = auto()
    NEEDS_EPOCH = auto()
    """The transaction has ended, and the next one requires another epoch."""
    SUSPENDS = auto()
    RESUMES = auto()
    FAILS = auto()
    FAILS_FOR_GOOD = auto()


_S, _T = TransactionState, TransactionTrigger
_OPEN = (_S.IN_TRANSACTION, _S.COMMITTING)

TRANSITIONS: dict[tuple[TransactionState, TransactionTrigger], TransactionState] = {
    (_S.UNINITIALIZED, _T.INITIALIZES): _S.INITIALIZING,
    (_S.INITIALIZING, _T.INITIALIZES): _S.INITIALIZING,
    (_S.INITIALIZING, _T.INITIALIZED): _S.READY,
    (_S.READY, _T.BEGINS): _S.IN_TRANSACTION,
    (_S.IN_TRANSACTION, _T.SUSPENDS): _S.SUSPENDED,
    (_S.UNINITIALIZED, _T.RESUMES): _S.IN_TRANSACTION,
    (_S.IN_TRANSACTION, _T.COMMITS): _S.COMMITTING,
    (_S.COMMITTING, _T.COMMITS): _S.COMMITTING,
    (_S.IN_TRANSACTION, _T.ABORTS): _S.ABORTING,
    (_S.ABORTABLE, _T.ABORTS): _S.ABORTING,
    (_S.ABORTING, _T.ABORTS): _S.ABORTING,
    (_S.INITIALIZING, _T.ABORTS): _S.INITIALIZING,
    (_S.COMMITTING, _T.ENDED): _S.READY,
    (_S.ABORTING, _T.ENDED): _S.READY,
    (_S.ABORTING, _T.NEEDS_EPOCH): _S.INITIALIZING,
    **{(state, _T.FAILS): _S.ABORTABLE for state in (*_OPEN, _S.ABORTABLE)},
    (_S.ABORTING, _T.FAILS): _S.ABORTING,
    **{(state, _T.FAILS_FOR_GOOD): _S.FATAL for state in TransactionState},
}
_TABLE = Transitions("TransactionalProducer", _S.UNINITIALIZED, TRANSITIONS)


class Failure(NamedTuple):
    """The failure of a transaction or of the producer."""

    code: int
    text: str


class Transaction(msgspec.Struct):
    """The state of a producer. A decision changes a copy."""

    state: TransactionState = TransactionState.UNINITIALIZED
    producer_id: int = NO_ID
    epoch: int = -1
    level: int = 0
    """The level of `transaction.version` for the next transaction."""
    is_implicit: bool = False
    """Whether a Produce adds its partitions to the open transaction, whose end increments the epoch."""
    is_known: bool = False
    """Whether the coordinator may know the open transaction, so that it must be ended there."""
    needs_epoch: bool = False
    """Whether the next transaction requires another epoch: sequence numbers, or this one's content, are unknown."""
    failure: Failure | None = None

    def move(self, trigger: TransactionTrigger) -> None:
        """Set the next state. Raises `TransitionError` where the state has no such transition."""
        self.state = _TABLE.following(self.state, trigger)

    def fail(self, failure: Failure, *, fatal: bool) -> None:
        """Set the state ABORTABLE or FATAL. The first failure is kept, unless a fatal one follows."""
        if self.failure is None or (fatal and self.state is not TransactionState.FATAL):
            self.failure = failure
        if self.state is not TransactionState.FATAL:
            self.move(TransactionTrigger.FAILS_FOR_GOOD if fatal else TransactionTrigger.FAILS)


class Outcome(NamedTuple):
    """The machine's decision about one event. It has no effect until it is applied."""

    transaction: Transaction
    decision: Decision


class TransactionMachine:
    """The state machine of one transactional producer."""

    def __init__(self) -> None:
        self.transaction = Transaction()

    def handle(self, event: Any) -> Outcome:
        """Decide about an event, and change nothing. Raises `TransitionError` for a call in the wrong state."""
        after = copy(self.transaction)
        return Outcome(after, DECISIONS[type(event)](after, event))

    def apply(self, transaction: Transaction) -> None:
        """Set a transaction that `handle` returned."""
        self.transaction = transaction


def _init_wanted(after: Transaction, _: events.InitWanted) -> Decision:
    after.move(TransactionTrigger.INITIALIZES)
    return Decision.DONE


def _init_completed(after: Transaction, event: events.InitCompleted) -> Decision:
    decision = decide(Request.INIT_PRODUCER_ID, event.code)
    if decision is Decision.FATAL:
        after.fail(Failure(event.code, event.text), fatal=True)
    elif decision is Decision.DONE:
        after.move(TransactionTrigger.INITIALIZED)
        after.producer_id, after.epoch, after.level = event.producer_id, event.epoch, event.level
        after.needs_epoch, after.failure = False, None
    return decision


def _begun(after: Transaction, _: events.Begun) -> Decision:
    after.move(TransactionTrigger.BEGINS)
    after.is_implicit = after.level >= _LEVEL_WITH_IMPLICIT_PARTITIONS
    after.is_known = False
    return Decision.DONE


def _suspended(after: Transaction, _: events.Suspended) -> Decision:
    after.move(TransactionTrigger.SUSPENDS)
    return Decision.DONE


def _resumed(after: Transaction, event: events.Resumed) -> Decision:
    after.move(TransactionTrigger.RESUMES)
    after.producer_id, after.epoch = event.producer_id, event.epoch
    after.is_implicit, after.is_known = event.is_implicit, event.is_known
    return Decision.DONE


def _responded(after: Transaction, event: events.Completed) -> Decision:
    decision = decide(event.request, event.code)
    if decision is Decision.DONE:
        after.is_known = True
    elif decision in (Decision.ABORTABLE, Decision.NEW_EPOCH, Decision.FATAL):
        # With an implicit transaction, a rejected partition may be part of it. So EndTxn is sent, which a coordinator
        # accepts even where it does not know the transaction.
        after.is_known |= after.is_implicit
        after.needs_epoch |= decision is Decision.NEW_EPOCH
        after.fail(Failure(event.code, event.text), fatal=decision is Decision.FATAL)
    return decision


def _unanswered(after: Transaction, event: events.Unanswered) -> Decision:
    after.needs_epoch = True
    after.is_known |= after.is_implicit
    after.fail(Failure(ErrorCode.NONE, event.text), fatal=False)
    return Decision.NEW_EPOCH


def _records_failed(after: Transaction, event: events.RecordsFailed) -> Decision:
    after.needs_epoch |= event.lost_sequence
    after.fail(Failure(event.code, event.text), fatal=event.fatal)
    return Decision.FATAL if event.fatal else Decision.ABORTABLE


def _end_wanted(after: Transaction, event: events.EndWanted) -> Decision:
    after.move(TransactionTrigger.COMMITS if event.commits else TransactionTrigger.ABORTS)
    return Decision.DONE


def _end_completed(after: Transaction, event: events.EndCompleted) -> Decision:
    decision = decide(Request.END, event.code)
    if decision in (Decision.AGAIN, Decision.SEARCH):
        return decision
    if decision is not Decision.DONE:
        is_lost = decision is Decision.FATAL or after.state is TransactionState.ABORTING
        after.needs_epoch |= decision is Decision.NEW_EPOCH
        after.fail(Failure(event.code, event.text), fatal=is_lost)
        return Decision.FATAL if is_lost else decision
    is_bumped = event.epoch >= 0
    if is_bumped:
        after.producer_id, after.epoch = event.producer_id, event.epoch
    queries = after.needs_epoch and not is_bumped
    after.move(TransactionTrigger.NEEDS_EPOCH if queries else TransactionTrigger.ENDED)
    after.level, after.needs_epoch, after.failure = event.level, queries, None
    after.is_known = after.is_implicit = False
    return Decision.DONE


DECISIONS: dict[type, Callable[[Transaction, Any], Decision]] = {
    events.InitWanted: _init_wanted,
    events.InitCompleted: _init_completed,
    events.Begun: _begun,
    events.Suspended: _suspended,
    events.Resumed: _resumed,
    events.Completed: _responded,
    events.Unanswered: _unanswered,
    events.RecordsFailed: _records_failed,
    events.EndWanted: _end_wanted,
    events.EndCompleted: _end_completed,
}
