"""DescribeTransactions and ListTransactions: the metadata of transactional ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.transaction.errors import TransactionalIdNotFoundError
from pybroker.machine.machine import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pybroker.coordinator.transaction.events import DescribeTransaction, ListTransactions
    from pybroker.coordinator.transaction.metadata import TransactionMetadata
    from pybroker.coordinator.transaction.records import TransactionRecord
    from pybroker.coordinator.transaction.state import TransactionView

    Listed = tuple[list[tuple[str, TransactionMetadata]], int]


def describe(
    view: TransactionView, event: DescribeTransaction, _now: int
) -> Outcome[TransactionRecord, TransactionMetadata]:
    """Return the metadata of a transactional id; raises `TransactionalIdNotFoundError`."""
    known = view.transactions.get(event.transactional_id)
    if known is None:
        raise TransactionalIdNotFoundError
    return Outcome((), known)


def list_transactions(view: TransactionView, _event: ListTransactions, now: int) -> Outcome[TransactionRecord, Listed]:
    """Return all transactional ids unfiltered: a check of each takes long if there are many."""
    return Outcome((), (list(view.transactions.items()), now))


class TransactionFilter(msgspec.Struct, frozen=True):
    """The filter of a ListTransactions request (KIP-664, KIP-994, KIP-1152)."""

    producer_ids: Collection[int] = ()
    """Only these producers; empty for all."""
    states: Collection[str] | None = None
    """Only these states, by Kafka's names; None for all."""
    duration_ms: int = -1
    """Only transactions that began longer ago, in ms; -1 for all."""
    matches: Callable[[str], object] | None = None
    """Only transactional ids that match; None for all."""

    def lets_through(self, transactional_id: str, known: TransactionMetadata, now: int) -> bool:
        """Return whether a transactional id passes the filter, `now` in ms."""
        if self.producer_ids and known.producer_id not in self.producer_ids:
            return False
        if self.states is not None and known.state.value not in self.states:
            return False
        # A transaction that has never begun passes the duration filter, as in Kafka.
        if self.duration_ms >= 0 and now - known.started_ms <= self.duration_ms:
            return False
        return self.matches is None or bool(self.matches(transactional_id))
