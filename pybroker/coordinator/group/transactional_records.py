"""Records of `__consumer_offsets` that belong to transactions: offsets that do not count yet, and markers.

Owns the shapes, as a decision makes them and as a load reads them. Must not know batches: `log` writes and reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.records import CURRENT_VERSION

if TYPE_CHECKING:
    from pybroker.protocol.schema import Message


class TransactionalKey(msgspec.Struct, frozen=True, gc=False):
    """The key of a record in a transactional batch."""

    producer_id: int
    producer_epoch: int
    key: object
    """What the record itself has."""


class TransactionEnd(msgspec.Struct, frozen=True, gc=False):
    """Stands for the key of a marker: the producer's transaction has ended."""

    producer_id: int
    producer_epoch: int
    committed: bool


class TransactionalRecord(msgspec.Struct, frozen=True, gc=False):
    """A record that is to be written in a batch of a producer's transaction."""

    key: TransactionalKey
    value: Message | None
    guard: int | None
    """What the log gave out when the transaction's verification began; 0 where it was open, None for no check."""
    version: int = CURRENT_VERSION


class Marker(msgspec.Struct, frozen=True, gc=False):
    """A marker that is to be written."""

    key: TransactionEnd
    coordinator_epoch: int
    """Leader epoch of the coordinator's partition of `__transaction_state`."""
    transaction_version: int
    """The `transaction.version` that the transaction follows (KIP-1228)."""
    value: None = None
