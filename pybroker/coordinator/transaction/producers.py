"""InitProducerId for a transactional id: the new producer id and epoch (KIP-98, KIP-360, KIP-890).

Owns which id and epoch a producer gets, and which producers are fenced. Kafka's `prepareInitProducerIdTransit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
    ProducerIdNeededError,
)
from pybroker.coordinator.transaction.events import ProducerIdentity
from pybroker.coordinator.transaction.metadata import (
    EXHAUSTED_EPOCH,
    FIRST_VERSION_WITH_EPOCH_BUMP,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
)
from pybroker.coordinator.transaction.records import TransactionRecord, value_version
from pybroker.coordinator.transaction.states import TransactionState
from pybroker.machine.machine import Outcome

if TYPE_CHECKING:
    from pybroker.coordinator.transaction.events import InitProducerId
    from pybroker.coordinator.transaction.state import TransactionView


def init_producer_id(
    view: TransactionView, event: InitProducerId, now: int
) -> Outcome[TransactionRecord, ProducerIdentity | None]:
    """Decide about an InitProducerId. Raises a `TransactionError`, or `ProducerIdNeededError`."""
    longest = view.context.settings.max_timeout_ms
    if not 0 < event.timeout_ms <= longest:
        raise InvalidTransactionTimeoutError(
            f"The transaction timeout is {event.timeout_ms} ms, and has to be 1 to {longest} "
            "(transaction.max.timeout.ms)."
        )
    known = view.transactions.get(event.transactional_id)
    if known is None:
        new = TransactionMetadata(producer_id=_fresh(event.fresh_id), timeout_ms=event.timeout_ms, updated_ms=now)
        return _given_out(view, event, new, now)
    if known.is_prepared:
        # Checked first: the producer may send the id that it gets on completion.
        raise ConcurrentTransactionsError
    if event.expected is not None and not _may_go_on(known, event.expected):
        raise ProducerFencedError
    if known.state is TransactionState.ONGOING:
        return Outcome((fence(view, event.transactional_id, known, now, event.fresh_id),), None)
    return _given_out(view, event, known, now)


def fence(
    view: TransactionView, transactional_id: str, known: TransactionMetadata, now: int, fresh_id: int | None
) -> TransactionRecord:
    """Return the record that aborts an open transaction and fences its producer.

    Raises `ProducerIdNeededError` if this uses the last epoch of the producer id.
    """
    version = view.context.version
    next_id = NO_PRODUCER_ID
    if version >= FIRST_VERSION_WITH_EPOCH_BUMP and known.is_epoch_exhausted:
        next_id = _fresh(fresh_id)
    return TransactionRecord(transactional_id, known.fence(version, now, next_id), value_version(version))


def _given_out(
    view: TransactionView, event: InitProducerId, known: TransactionMetadata, now: int
) -> Outcome[TransactionRecord, ProducerIdentity | None]:
    expected = event.expected
    if known.is_epoch_exhausted and (expected is None or expected.producer_epoch == known.producer_epoch):
        keeps_last = expected is not None
        given = known.rotate(_fresh(event.fresh_id), event.timeout_ms, now, keeps_last=keeps_last)
    else:
        bumped = known.bump(event.timeout_ms, None if expected is None else expected.producer_epoch, now)
        if bumped is None:
            raise ProducerFencedError
        given = bumped
    record = TransactionRecord(event.transactional_id, given, value_version(view.context.version))
    return Outcome((record,), ProducerIdentity(given.producer_id, given.producer_epoch))


def _may_go_on(known: TransactionMetadata, expected: ProducerIdentity) -> bool:
    """Return whether a producer that sends its id has this transactional id; the epoch is checked on the next bump.

    The previous id is valid in a retry whose first response, with a new id after the last epoch, was lost.
    """
    if known.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == known.producer_id:
        return True
    return expected.producer_id == known.previous_producer_id and expected.producer_epoch >= EXHAUSTED_EPOCH


def _fresh(fresh_id: int | None) -> int:
    if fresh_id is None:
        raise ProducerIdNeededError
    return fresh_id
