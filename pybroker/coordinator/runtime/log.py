"""The interfaces of a coordinator's log, and of the codec between its records and the log's batches.

Owns only these types. Must not know the meaning of a record, nor where the log is stored.
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
        """Offsets below it are committed."""

    @property
    def log_start_offset(self) -> int:
        """Offset of the first record."""

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""

    @property
    def max_batch_bytes(self) -> int:
        """The maximum batch size of the log now."""

    def append(self, batches: bytes, now_ms: int) -> tuple[int, int]:
        """Append batches without waiting for a disk; returns (first offset, last offset)."""

    def has_completed(self, end_offset: int) -> bool:
        """Return whether all records below are committed, and synced if the log's configuration requires it."""

    def complete(self, end_offset: int, ticket: int) -> None:
        """Start settling all records below; afterwards `CommitWaits.append_completed` is called with the ticket."""

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches, starting with the one that contains `offset`; the last may be truncated, the first not."""


class TransactionalLog(PartitionLog, Protocol):
    """A log that also accepts transactional batches."""

    def append_transactional(self, batches: bytes, now_ms: int, guard: int | None) -> tuple[int, int]:
        """As `append`, for batches of one producer's transaction. `guard` is the result of `begin_verification` for
        the transaction's first batch, 0 if the transaction is open, None for no check.
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
        """Return the guard for the transaction's first batch in this log; 0 if the transaction is open already."""


class Fault(msgspec.Struct, frozen=True):
    """A record that cannot be decoded, or all records from an offset to the end of their batch."""

    first_offset: int
    last_offset: int
    key: Any
    """Key of a record whose value alone is malformed; None if the key cannot be decoded."""
    cause: str


class Chunk(msgspec.Struct, frozen=True):
    """The content of whole batches at the start of a buffer."""

    records: list[tuple[Any, Any]]
    """Key and value; None for a tombstone."""
    next_offset: int
    size: int
    skipped: int
    """Number of records whose types are unknown to this version."""
    faults: Sequence[Fault] = ()
    """Decoding errors. If the kind requests it, `records` has a tombstone in place of a record with a key."""


class RecordCodec(Protocol[Record]):
    """Converts the records of one kind of coordinator to and from batches of its topic."""

    def encode(self, records: Sequence[Record], now_ms: int, *, max_batch_bytes: int) -> bytes:
        """Return the batches of a decision, with timestamps in ms; empty if the decision writes no record."""

    def decode(self, batches: bytes) -> Chunk:
        """Decode the whole batches at the start of a buffer; raises `MalformedMessage` for an invalid batch."""
