"""AddPartitionsToTxn and AddOffsetsToTxn: the partitions of a transaction, and their verification by brokers.

Owns both decisions (Kafka's `handleAddPartitionsToTransaction` and `handleVerifyPartitionsInTransaction`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    ProducerFencedError,
)
from pybroker.coordinator.transaction.records import TransactionRecord, value_version
from pybroker.coordinator.transaction.states import TransactionState
from pybroker.machine.machine import Outcome
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pybroker.coordinator.transaction.events import AddPartitions, ProducerIdentity, VerifyPartitions
    from pybroker.coordinator.transaction.metadata import TransactionMetadata
    from pybroker.coordinator.transaction.state import TransactionView


def add_partitions(view: TransactionView, event: AddPartitions, now: int) -> Outcome[TransactionRecord, None]:
    """Decide about partitions to add to a transaction; the first one begins it. Raises a `TransactionError`.

    If the transaction has them already, the reply is immediate, without a record.
    """
    known = view.transactions.get(event.transactional_id)
    if known is not None and known.is_prepared:
        # Checked first: the producer may have the epoch, or the id, that it gets on completion.
        raise ConcurrentTransactionsError
    known = _of_producer(known, event.identity)
    if known.state is TransactionState.ONGOING and event.partitions <= known.partitions:
        return Outcome((), None)
    added = known.add(event.partitions, event.client_version, now)
    return Outcome((TransactionRecord(event.transactional_id, added, value_version(view.context.version)),), None)


def verify_partitions(
    view: TransactionView, event: VerifyPartitions, _now: int
) -> Outcome[TransactionRecord, dict[tuple[str, int], ErrorCode]]:
    """Return NONE for each partition of the open transaction; the code of others makes the producer abort (KIP-890)."""
    known = _of_producer(view.transactions.get(event.transactional_id), event.identity)
    if known.is_prepared:
        raise ConcurrentTransactionsError
    unknown = ErrorCode.TRANSACTION_ABORTABLE
    return Outcome((), {one: ErrorCode.NONE if one in known.partitions else unknown for one in event.partitions})


def _of_producer(known: TransactionMetadata | None, identity: ProducerIdentity) -> TransactionMetadata:
    """Return the metadata of a transactional id, if the producer is its current one; raises a `TransactionError`."""
    if known is None or known.producer_id != identity.producer_id:
        raise InvalidProducerIdMappingError
    if known.producer_epoch != identity.producer_epoch:
        raise ProducerFencedError
    return known
