"""Transactional records of `__consumer_offsets`: pending offsets, and markers.

Owns their types, for decisions and for loading. Must not know batches: `log` encodes and decodes them.
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
    """The key of the record itself."""


class TransactionEnd(msgspec.Struct, frozen=True, gc=False):
    """Key for a marker: the producer's transaction has ended."""

    producer_id: int
    producer_epoch: int
    committed: bool


class TransactionalRecord(msgspec.Struct, frozen=True, gc=False):
    """A record to be written in a batch of a producer's transaction."""

    key: TransactionalKey
    value: Message | None
    guard: int | None
    """The guard that the log returned when the verification began; 0 if the transaction was open, None for no check."""
    version: int = CURRENT_VERSION


class Marker(msgspec.Struct, frozen=True, gc=False):
    """A marker to be written."""

    key: TransactionEnd
    coordinator_epoch: int
    """Leader epoch of the coordinator's partition of `__transaction_state`."""
    transaction_version: int
    """The `transaction.version` of the transaction (KIP-1228)."""
    value: None = None
