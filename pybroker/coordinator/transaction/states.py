"""The states of a transactional id, with Kafka's names and numbers, and their transitions.

Owns only the transition table. Must not know epochs, partitions or records.
"""

from __future__ import annotations

from enum import Enum

from pybroker.machine.transitions import Transitions


class TransactionState(Enum):
    """The state of a transactional id. The value is Kafka's name of the state."""

    # By identity: Enum's own hash is a Python call, and a state is looked up at every step.
    __hash__ = object.__hash__

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


NUMBERS = {state: number for number, state in enumerate(TransactionState)}
"""Kafka's numbers in records. No record contains Dead (a tombstone replaces it) or PrepareEpochFence."""
STATES = tuple(TransactionState)
"""States by number."""
LOGGED = frozenset(STATES) - {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
"""States that a record may contain."""


class TransactionStep(Enum):
    """A transition of a transactional id."""

    __hash__ = object.__hash__

    INITIALIZE = "InitProducerId gives out an epoch, or a new producer id"
    ADD = "partitions are added"
    COMMIT = "EndTxn commits"
    ABORT = "EndTxn, a timeout or a new producer aborts"
    FENCE = "the producer is fenced: a timeout, or a new producer"
    COMPLETE = "every partition has its marker"
    EXPIRE = "it was silent for transactional.id.expiration.ms"


_S, _E = TransactionState, TransactionStep

TRANSITIONS = {
    (_S.EMPTY, _E.INITIALIZE): _S.EMPTY,
    (_S.EMPTY, _E.ADD): _S.ONGOING,
    # From transaction.version 2 on a client aborts without knowing whether a partition was added (KIP-890).
    (_S.EMPTY, _E.ABORT): _S.PREPARE_ABORT,
    (_S.EMPTY, _E.EXPIRE): _S.DEAD,
    (_S.ONGOING, _E.ADD): _S.ONGOING,
    (_S.ONGOING, _E.COMMIT): _S.PREPARE_COMMIT,
    (_S.ONGOING, _E.ABORT): _S.PREPARE_ABORT,
    (_S.ONGOING, _E.FENCE): _S.PREPARE_EPOCH_FENCE,
    (_S.PREPARE_EPOCH_FENCE, _E.ABORT): _S.PREPARE_ABORT,
    (_S.PREPARE_COMMIT, _E.COMPLETE): _S.COMPLETE_COMMIT,
    (_S.PREPARE_ABORT, _E.COMPLETE): _S.COMPLETE_ABORT,
    (_S.COMPLETE_COMMIT, _E.INITIALIZE): _S.EMPTY,
    (_S.COMPLETE_COMMIT, _E.ADD): _S.ONGOING,
    (_S.COMPLETE_COMMIT, _E.ABORT): _S.PREPARE_ABORT,
    (_S.COMPLETE_COMMIT, _E.EXPIRE): _S.DEAD,
    (_S.COMPLETE_ABORT, _E.INITIALIZE): _S.EMPTY,
    (_S.COMPLETE_ABORT, _E.ADD): _S.ONGOING,
    (_S.COMPLETE_ABORT, _E.ABORT): _S.PREPARE_ABORT,
    (_S.COMPLETE_ABORT, _E.EXPIRE): _S.DEAD,
}

TRANSACTION_LIFE = Transitions("transactional id", TransactionState.EMPTY, TRANSITIONS)
