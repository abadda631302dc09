"""What a coordinator needs of a log, and of the codec between its records and the log's batches.

Owns the shapes alone. Must not know what a record means, nor where the log lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

Record = TypeVar("Record", contravariant=True)


class PartitionLog(Protocol):
    """A partition of an internal topic that this broker leads."""

    @property
    def high_watermark(self) -> int:
        """What lies below is committed."""

    @property
    def log_start_offset(self) -> int:
        """Offset of the first record."""

    @property
    def log_end_offset(self) -> int:
        """Offset that the next record will have."""

    @property
    def max_batch_bytes(self) -> int:
        """The largest batch that the log takes now."""

    def append(self, batches: bytes, now_ms: int) -> tuple[int, int]:
        """Append batches without waiting for a disk: (first offset, last offset)."""

    def has_settled(self, end_offset: int) -> bool:
        """Return whether all below is committed, and on the device where the log's settings want that."""

    def settle(self, end_offset: int, ticket: int) -> None:
        """Have all below settled; `CommitWaits.append_settled` is called with the ticket when it was tried."""

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches from the one that holds `offset`, the last perhaps cut, the first not."""


class TransactionalLog(PartitionLog, Protocol):
    """A log that is written as part of transactions as well."""

    def append_transactional(self, batches: bytes, now_ms: int, guard: int | None) -> tuple[int, int]:
        """As `append`, for batches of one producer's transaction; `guard` is that of its verification, where it begins
        one: 0 where it was open, None for no check.
        """

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> tuple[int, int]:
        """As `append`, for the marker that ends a producer's transaction."""

    def begin_verification(self, producer_id: int, producer_epoch: int, *, bumps_epoch: bool, now_ms: int) -> int:
        """Return the guard that a transaction's first batch here is to be appended with; 0 where it is open already."""


class Fault(msgspec.Struct, frozen=True):
    """What cannot be read of a log: a record, or the records from an offset to the end of their batch."""

    first_offset: int
    last_offset: int
    key: Any
    """Of a record whose value alone is malformed; None where the key cannot be read."""
    cause: str


class Chunk(msgspec.Struct, frozen=True):
    """What whole batches at the front of a buffer hold."""

    records: list[tuple[Any, Any]]
    """Key and value; None for a tombstone."""
    next_offset: int
    size: int
    skipped: int
    """Records of types that this version does not know."""
    faults: Sequence[Fault] = ()
    """What cannot be read. Where the kind wants it, `records` has a tombstone in place of a record with a key."""


class RecordCodec(Protocol[Record]):
    """Between the records of one kind of coordinator and the batches of its topic."""

    def encode(self, records: Sequence[Record], now_ms: int, *, max_batch_bytes: int) -> bytes:
        """Make the batches of a decision, stamped with milliseconds; empty where nothing of it is written down."""

    def decode(self, batches: bytes) -> Chunk:
        """Read the whole batches at the front of a buffer; raises `MalformedMessage` for what is no batch."""
