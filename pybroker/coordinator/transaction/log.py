"""Between records and the batches of `__transaction_state`.

Owns the table of record types and the codec of batches, which are never compressed. Must not know what a record means.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

from pybroker.coordinator.runtime.log import Chunk, Fault
from pybroker.coordinator.transaction.native import RecordTable
from pybroker.coordinator.transaction.records import FIRST_VERSION_WITH_OTHER_IDS, build_value, check_value
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
        """Read the whole batches at the front of a buffer; raises `MalformedMessage` for what is no batch.

        A record whose value cannot be read counts as a tombstone. The earlier state of its transactional id could abort
        a transaction that this record has committed, or accept a producer that it has fenced.
        """
        records, next_offset, size, skipped, _, faults = _table().decode(batches, max_bytes=_MAX_DECOMPRESSED_BYTES)
        for index, _, _, key, _ in reversed(faults):
            if key is not None:
                records.insert(index, (key, None))
        return Chunk(records, next_offset, size, skipped, [Fault(*fault[1:]) for fault in faults])


def fault_effect(key: TransactionLogKey | None) -> str:
    """Return what follows from a record that cannot be read, for the log."""
    if key is None:
        return "the transactional id of the record is not known. The state of its earlier records stays in force"
    return (
        f"transactional id {key.transactional_id!r} is not known here unless a later record has its state. Its "
        "producer gets INVALID_PRODUCER_ID_MAPPING and has to be started again; find the transaction that it may have "
        "left open with 'pybroker transactions find-hanging'"
    )


@cache
def _table() -> RecordTable:
    key, value = schema_of(TransactionLogKey), schema_of(TransactionLogValue)
    row = (_TRANSACTION_LOG, TransactionLogKey, key, value, FIRST_VERSION_WITH_OTHER_IDS)
    return RecordTable([row], check_value)
