"""DescribeTransactions and ListTransactions: what is known of transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.errors import TransactionalIdNotFoundError
from pybroker.machine.machine import Outcome

if TYPE_CHECKING:
    from pybroker.coordinator.transaction.events import DescribeTransaction, ListTransactions
    from pybroker.coordinator.transaction.metadata import TransactionMetadata
    from pybroker.coordinator.transaction.records import TransactionRecord
    from pybroker.coordinator.transaction.state import TransactionView


def describe(
    view: TransactionView, event: DescribeTransaction, _now: int
) -> Outcome[TransactionRecord, TransactionMetadata]:
    """Return what is known of a transactional id; raises `TransactionalIdNotFoundError`."""
    known = view.transactions.get(event.transactional_id)
    if known is None:
        raise TransactionalIdNotFoundError
    return Outcome((), known)


def list_transactions(
    view: TransactionView, event: ListTransactions, now: int
) -> Outcome[TransactionRecord, list[tuple[str, TransactionMetadata]]]:
    """List the transactional ids that every filter lets through (KIP-664, KIP-994, KIP-1152)."""
    return Outcome(
        (), [(one, known) for one, known in view.transactions.items() if _is_asked_for(one, known, event, now)]
    )


def _is_asked_for(transactional_id: str, known: TransactionMetadata, event: ListTransactions, now: int) -> bool:
    if event.producer_ids and known.producer_id not in event.producer_ids:
        return False
    if event.states is not None and known.state.value not in event.states:
        return False
    # One that has never begun counts as begun long ago, as in Kafka.
    if event.duration_ms >= 0 and now - known.started_ms <= event.duration_ms:
        return False
    return event.matches is None or event.matches(transactional_id)
