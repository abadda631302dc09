"""EndTxn, and the completion of a transaction once all markers are written.

Owns which requests may end a transaction. Retries are recognized as in Kafka's `endTransaction`: below
transaction.version 2 by the state, from 2 on by the epoch, which every end increments (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    ProducerFencedError,
    ProducerIdNeededError,
)
from pybroker.coordinator.transaction.events import NO_IDENTITY, ProducerIdentity
from pybroker.coordinator.transaction.metadata import (
    EXHAUSTED_EPOCH,
    FIRST_VERSION_WITH_EPOCH_BUMP,
    NO_PRODUCER_ID,
)
from pybroker.coordinator.transaction.records import TransactionRecord, value_version
from pybroker.coordinator.transaction.states import TransactionState
from pybroker.machine.machine import Outcome

if TYPE_CHECKING:
    from pybroker.coordinator.transaction.events import CompleteTransaction, EndTransaction
    from pybroker.coordinator.transaction.metadata import TransactionMetadata
    from pybroker.coordinator.transaction.state import TransactionView

_S = TransactionState
_EMPTY, _ONGOING = _S.EMPTY, _S.ONGOING
_COMPLETE_COMMIT, _COMPLETE_ABORT = _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT


def end_transaction(
    view: TransactionView, event: EndTransaction, now: int
) -> Outcome[TransactionRecord, ProducerIdentity]:
    """Decide about a client's EndTxn. Raises a `TransactionError`, or `ProducerIdNeededError`."""
    known = view.transactions.get(event.transactional_id)
    if known is None:
        raise InvalidProducerIdMappingError
    bumps = event.client_version >= FIRST_VERSION_WITH_EPOCH_BUMP
    is_over = _is_over_since_2(known, event) if bumps else _is_over_before_2(known, event)
    if is_over:
        return Outcome((), ProducerIdentity(known.producer_id, known.producer_epoch) if bumps else NO_IDENTITY)
    next_id = NO_PRODUCER_ID
    if bumps and known.is_epoch_exhausted:
        if event.fresh_id is None:
            raise ProducerIdNeededError
        next_id = event.fresh_id
    version = FIRST_VERSION_WITH_EPOCH_BUMP if bumps else 0
    prepared = known.prepare(commit=event.commit, client_version=version, now=now, next_producer_id=next_id)
    record = TransactionRecord(event.transactional_id, prepared, value_version(view.context.version))
    if not bumps:
        return Outcome((record,), NO_IDENTITY)
    # The client continues with the epoch after the completion, without waiting for it.
    after = prepared.complete(now)
    return Outcome((record,), ProducerIdentity(after.producer_id, after.producer_epoch))


def _is_over_before_2(known: TransactionMetadata, event: EndTransaction) -> bool:
    """Return whether the transaction has ended in this way, below transaction.version 2; False if it can end."""
    if known.producer_id != event.identity.producer_id:
        raise InvalidProducerIdMappingError
    if known.producer_epoch != event.identity.producer_epoch:
        raise ProducerFencedError
    state = known.state
    if state is _ONGOING:
        return False
    if known.is_prepared:
        raise ConcurrentTransactionsError
    if state is (_COMPLETE_COMMIT if event.commit else _COMPLETE_ABORT):
        return True
    raise InvalidTxnStateError(_refusal(known, event))


def _is_over_since_2(known: TransactionMetadata, event: EndTransaction) -> bool:
    """Return whether the transaction has ended in this way, from transaction.version 2 on; False if it can end."""
    if known.is_prepared:
        # The client may send the epoch, or the producer id, that it gets on completion.
        raise ConcurrentTransactionsError
    producer_id, epoch = event.identity
    state = known.state
    # If the first response was lost, the client sends the epoch before the end, or the last epoch of the previous id.
    repeats_bump = known.producer_epoch == epoch + 1
    repeats_rotation = (
        known.previous_producer_id == producer_id and epoch == EXHAUSTED_EPOCH and known.producer_epoch == 0
    )
    repeats = repeats_bump or repeats_rotation
    if known.producer_id != producer_id and not repeats_rotation:
        raise InvalidProducerIdMappingError
    is_complete = state not in (_ONGOING, _EMPTY)
    if epoch != known.producer_epoch and not (is_complete and repeats):
        raise ProducerFencedError
    if state is _ONGOING:
        return False
    if repeats:
        if state is (_COMPLETE_COMMIT if event.commit else _COMPLETE_ABORT):
            return True
    elif not event.commit:
        return False  # An abort without a transaction: the client does not know whether a partition was added.
    raise InvalidTxnStateError(_refusal(known, event))


def _refusal(known: TransactionMetadata, event: EndTransaction) -> str:
    wanted = "committed" if event.commit else "aborted"
    return f"A transaction in state {known.state.value} cannot be {wanted}."


def complete_transaction(
    view: TransactionView, event: CompleteTransaction, now: int
) -> Outcome[TransactionRecord, None]:
    """Complete a prepared transaction after all markers are written; does nothing for a completed or newer one."""
    known = view.transactions.get(event.transactional_id)
    if known is None or not known.is_prepared or (known.producer_id, known.producer_epoch) != event.identity:
        return Outcome((), None)
    record = TransactionRecord(event.transactional_id, known.complete(now), value_version(view.context.version))
    return Outcome((record,), None)
