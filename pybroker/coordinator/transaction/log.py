"""Encodes records as batches of `__transaction_state`, and decodes them.

Owns the table of record types and the batch codec, without compression. Must not know the meaning of a record.
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

# One is created for each record: positional arguments cost a third of keyword arguments.
_key = cast("Callable[[str], TransactionLogKey]", TransactionLogKey)
_MAX_DECOMPRESSED_BYTES = 1 << 30
"""Maximum decompressed size of a batch; it limits the memory for a damaged one."""
_UNCOMPRESSED = 0
_TRANSACTION_LOG = 0
"""Kafka's number of the only record type."""


class TransactionRecordCodec:
    """A `RecordCodec` for transactions."""

    def encode(self, records: Sequence[TransactionRecord], now_ms: int, *, max_batch_bytes: int) -> bytes:
        """Return the batches of a decision; empty if the decision writes no record."""
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
        """Decode the whole batches at the start of a buffer; raises `MalformedMessage` for an invalid batch.

        A record with an unreadable value becomes a tombstone. With the earlier state of its transactional id, the
        coordinator could abort a transaction that this record has committed, or accept a producer that it has fenced.
        """
        records, next_offset, size, skipped, _, faults = _table().decode(batches, max_bytes=_MAX_DECOMPRESSED_BYTES)
        for index, _, _, key, _ in reversed(faults):
            if key is not None:
                records.insert(index, (key, None))
        return Chunk(records, next_offset, size, skipped, [Fault(*fault[1:]) for fault in faults])


def fault_effect(key: TransactionLogKey | None) -> str:
    """Return a log message with the effect of an unreadable record."""
    if key is None:
        return "the transactional id of the record is unknown. Its earlier records remain in force"
    return (
        f"transactional id {key.transactional_id!r} is unknown here unless a later record has its state. "
        "Its producer receives INVALID_PRODUCER_ID_MAPPING and must be restarted. Find a transaction that is still "
        "open with 'pybroker transactions find-hanging'"
    )


@cache
def _table() -> RecordTable:
    key, value = schema_of(TransactionLogKey), schema_of(TransactionLogValue)
    row = (_TRANSACTION_LOG, TransactionLogKey, key, value, FIRST_VERSION_WITH_OTHER_IDS)
    return RecordTable([row], check_value)
