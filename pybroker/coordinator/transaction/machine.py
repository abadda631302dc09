"""TransactionMachine: every decision about the transactional ids of one partition of `__transaction_state`.

Owns the dispatch of events. Reads no clock, has no random source and does no I/O: new producer ids are part of the
events that need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.coordinator.runtime.machine import Loaded
from pybroker.coordinator.transaction import admin, ending, overdue, partitions, producers
from pybroker.coordinator.transaction.events import (
    AbortTimedOut,
    AddPartitions,
    CompleteTransaction,
    DescribeTransaction,
    EndTransaction,
    ExpireTransactionalIds,
    InitProducerId,
    ListTransactions,
    VerifyPartitions,
)
from pybroker.coordinator.transaction.records import build_metadata
from pybroker.coordinator.transaction.state import TransactionsState
from pybroker.machine.machine import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pybroker.coordinator.transaction.records import TransactionRecord
    from pybroker.coordinator.transaction.state import TransactionContext, TransactionView

    Decision = Callable[[TransactionView, Any, int], Outcome[TransactionRecord, Any]]


class TransactionMachine:
    """A `ShardMachine` over the transactional ids of one partition."""

    def __init__(self, context: TransactionContext) -> None:
        """`context` is shared by the machines of all partitions; it may change between decisions."""
        self.state = TransactionsState(context)

    def handle(self, event: Any, now: int) -> Outcome[TransactionRecord, Any]:
        """Decide about an event at `now` in milliseconds; the event's docstring describes the reply."""
        return DECISIONS[type(event)](self.state, event, now)

    def apply(self, record: TransactionRecord) -> None:
        """Apply a record to the state."""
        self.state.put(record.transactional_id, record.metadata)

    def load(self, records: Iterable[tuple[Any, Any]]) -> None:
        """Apply records that were read from the log: keys and values. Raises `MalformedMessage`."""
        put = self.state.put
        for key, value in records:
            put(key.transactional_id, None if value is None else build_metadata(value))

    def entries(self) -> int:
        """Count the transactional ids."""
        return len(self.state.transactions)

    def draft(self) -> TransactionMachine:
        """Return this machine, which records all changes from now on."""
        self.state.begin()
        return self

    def keep(self) -> TransactionMachine:
        """Keep the changes since `draft`."""
        self.state.commit()
        return self

    def drop(self) -> None:
        """Undo the changes since `draft`."""
        self.state.undo()


def _loaded(view: TransactionView, _event: Loaded, now: int) -> Outcome[TransactionRecord, None]:
    return Outcome((), None, (overdue.expiration_timer(view, now),))


DECISIONS: dict[type, Decision] = {
    AbortTimedOut: overdue.abort_timed_out,
    AddPartitions: partitions.add_partitions,
    CompleteTransaction: ending.complete_transaction,
    DescribeTransaction: admin.describe,
    EndTransaction: ending.end_transaction,
    ExpireTransactionalIds: overdue.expire_ids,
    InitProducerId: producers.init_producer_id,
    ListTransactions: admin.list_transactions,
    Loaded: _loaded,
    VerifyPartitions: partitions.verify_partitions,
}
"""The decision function of each event type."""
