"""Between records and the batches of `__consumer_offsets`.

Owns the table of record types and the codec of batches. Must not know what a record means.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pybroker.coordinator.group.native import RecordTable
from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.runtime.log import Chunk
from pybroker.protocol.codec import schema_of
from pybroker.protocol.messages.group_records import GROUP_RECORDS, LEGACY_OFFSET_COMMIT, record_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.coordinator.group.group_change import Record

MAX_DECOMPRESSED_BYTES = 1 << 30
"""No batch of ours decompresses to more; it bounds what a damaged one may take."""


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


class GroupRecordCodec:
    """A `RecordCodec` that compresses batches by one codec, which has Kafka's number."""

    def __init__(self, codec: int) -> None:
        self._codec = codec

    def encode(self, records: Sequence[Record], now_ms: int, *, max_batch_bytes: int) -> bytes:
        """As `encode_records`."""
        return encode_records(records, now_ms, codec=self._codec, max_batch_bytes=max_batch_bytes)

    def decode(self, batches: bytes) -> Chunk:
        """As `decode_records`."""
        return decode_records(batches)


@cache
def _table() -> RecordTable:
    types = []
    for number in (*GROUP_RECORDS, LEGACY_OFFSET_COMMIT):
        classes = record_classes(number)
        types.append((number, classes.key, schema_of(classes.key), schema_of(classes.value), classes.version))
    return RecordTable(types)
