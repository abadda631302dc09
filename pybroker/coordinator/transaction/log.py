"""Between records and the batches of `__transaction_state`.

Owns the table of record types and the codec of batches, which are never compressed. Must not know what a record means.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from pybroker.coordinator.runtime.log import Chunk
from pybroker.coordinator.transaction.native import RecordTable
from pybroker.coordinator.transaction.records import FIRST_VERSION_WITH_OTHER_IDS, build_value
from pybroker.protocol.codec import schema_of
from pybroker.protocol.messages.transaction_records.transaction_log import TransactionLogKey, TransactionLogValue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.coordinator.transaction.records import TransactionRecord

# One is made for each record: by position that costs a third of what it does by name.
_key = cast("Callable[[str], TransactionLogKey]", TransactionLogKey)
_MAX_DECOMPRESSED_BYTES = 1 << 30
"""No batch of ours decompresses to more; it bounds what a damaged one may take."""
_UNCOMPRESSED = 0
_TRANSACTION_LOG = 0
"""Kafka's number of the one type of record."""


class TransactionRecordCodec:
    """A `RecordCodec` for transactions."""

    def encode(self, records: Sequence[TransactionRecord], now_ms: int, *, max_batch_bytes: int) -> bytes:
        """Make the batches of a decision; empty where nothing of it is written down."""
        if not records:
            return b""
        written: list[tuple[object, object | None, int]] = [
            (
                _key(record.transactional_id),
                None if record.metadata is None else build_value(record.metadata, record.version),
                record.version,
            )
            for record in records
        ]
        return _table().encode(written, now_ms, codec=_UNCOMPRESSED, max_batch_bytes=max_batch_bytes)

    def decode(self, batches: bytes) -> Chunk:
        """Read the whole batches at the front of a buffer; raises `MalformedMessage`."""
        return Chunk(*_table().decode(batches, max_bytes=_MAX_DECOMPRESSED_BYTES)[:4])


@cache
def _table() -> RecordTable:
    key, value = schema_of(TransactionLogKey), schema_of(TransactionLogValue)
    return RecordTable([(_TRANSACTION_LOG, TransactionLogKey, key, value, FIRST_VERSION_WITH_OTHER_IDS)])
