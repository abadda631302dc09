"""Between records and the batches of `__consumer_offsets`, and what the coordinator needs of a log.

Owns the table of record types and the codec of batches. Must not know what a record means.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pybroker.coordinator.group.native import RecordTable
from pybroker.coordinator.group.records import GroupRecord
from pybroker.protocol.codec import schema_of
from pybroker.protocol.messages.group_records import GROUP_RECORDS, LEGACY_OFFSET_COMMIT, record_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.coordinator.group.group_change import Record

MAX_DECOMPRESSED_BYTES = 1 << 30
"""No batch of ours decompresses to more; it bounds what a damaged one may take."""


class PartitionLog(Protocol):
    """A partition of `__consumer_offsets` that this broker leads."""

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
        """Have all below settled; `GroupCoordinator.append_settled` is called with the ticket when it was tried."""

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches from the one that holds `offset`, the last perhaps cut, the first not."""


class Chunk(NamedTuple):
    """What whole batches at the front of a buffer hold."""

    records: list[tuple[Any, Any]]
    """Key and value; None for a tombstone."""
    next_offset: int
    size: int
    skipped: int
    """Records of types that this version does not know."""


def encode_records(records: Sequence[Record], now_ms: int, *, codec: int, max_batch_bytes: int) -> bytes:
    """Make the batches of a decision; empty where nothing of it is written down."""
    written: list[tuple[object, object | None, int]] = [
        (record.key, record.value, record.version) for record in records if type(record) is GroupRecord
    ]
    if not written:
        return b""
    return _table().encode(written, now_ms, codec=codec, max_batch_bytes=max_batch_bytes)


def decode_records(batches: bytes) -> Chunk:
    """Read the whole batches at the front of a buffer; raises `MalformedMessage`."""
    return Chunk(*_table().decode(batches, max_bytes=MAX_DECOMPRESSED_BYTES))


@cache
def _table() -> RecordTable:
    types = []
    for number in (*GROUP_RECORDS, LEGACY_OFFSET_COMMIT):
        classes = record_classes(number)
        types.append((number, classes.key, schema_of(classes.key), schema_of(classes.value), classes.version))
    return RecordTable(types)
