"""Encodes records as batches of `__consumer_offsets`, and decodes them.

Owns the table of record types and the batch codec. Must not know the meaning of a record.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pybroker.coordinator.group.native import RecordTable
from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.group.transactional_records import (
    Marker,
    TransactionalKey,
    TransactionalRecord,
    TransactionEnd,
)
from pybroker.coordinator.runtime.log import Chunk, Fault
from pybroker.protocol.codec import schema_of
from pybroker.protocol.messages.group_records import GROUP_RECORDS, LEGACY_OFFSET_COMMIT, record_classes
from pybroker.protocol.messages.group_records.group_metadata import GroupMetadataKey
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.runtime.log import TransactionalLog

MAX_DECOMPRESSED_BYTES = 1 << 30
"""Maximum decompressed size of a batch; it limits the memory for a damaged one."""


def encode_records(records: Sequence[Record], now_ms: int, *, codec: int, max_batch_bytes: int) -> bytes:
    """Return the batches of a decision; empty if the decision writes no record."""
    written: list[tuple[object, object | None, int]] = [
        (record.key, record.value, record.version) for record in records if type(record) is GroupRecord
    ]
    if not written:
        return b""
    return _table().encode(written, now_ms, codec=codec, max_batch_bytes=max_batch_bytes)


def decode_records(batches: bytes) -> Chunk:
    """Decode the whole batches at the start of a buffer; raises `MalformedMessage` for an invalid batch.

    A transactional record has a `TransactionalKey`; the end of a transaction is a `TransactionEnd`.
    """
    read, next_offset, size, skipped, transacted, found = _table().decode(batches, max_bytes=MAX_DECOMPRESSED_BYTES)
    faults = [Fault(*fault[1:]) for fault in found]
    if not transacted:
        return Chunk(read, next_offset, size, skipped, faults)
    records: list[tuple[Any, Any]] = []
    done = 0
    for begin, end, producer_id, epoch, committed in transacted:
        records += read[done:begin]
        if committed is None:
            of_transaction = read[begin:end]
            records += [(TransactionalKey(producer_id, epoch, key), value) for key, value in of_transaction]
        else:
            records.append((TransactionEnd(producer_id, epoch, committed), None))
        done = end
    records += read[done:]
    return Chunk(records, next_offset, size, skipped, faults)


def fault_effect(key: Any) -> str:
    """Return a log message with the effect of an unreadable record."""
    if key is None:
        return "the group of the record is unknown. Its earlier records remain in force"
    if isinstance(key, OffsetCommitKey):
        return (
            f"group {key.group!r} keeps the offset of {key.topic}-{key.partition} from another record, or none, "
            "and may read records again"
        )
    group = key.group if isinstance(key, GroupMetadataKey) else key.group_id
    return f"group {group!r} keeps the state of its other records, and may rebalance"


def encode_transactional(
    records: Sequence[TransactionalRecord], now_ms: int, *, codec: int, max_batch_bytes: int
) -> bytes:
    """Return the batches of records of one transaction."""
    first = records[0].key
    written: list[tuple[object, object | None, int]] = [
        (record.key.key, record.value, record.version) for record in records
    ]
    producer = (first.producer_id, first.producer_epoch)
    return _table().encode(written, now_ms, codec=codec, max_batch_bytes=max_batch_bytes, producer=producer)


class GroupRecordCodec:
    """A `RecordCodec` that compresses batches with one codec, given by Kafka's number."""

    def __init__(self, codec: int) -> None:
        self._codec = codec

    def encode(self, records: Sequence[Record], now_ms: int, *, max_batch_bytes: int) -> bytes:
        """As `encode_records`."""
        return encode_records(records, now_ms, codec=self._codec, max_batch_bytes=max_batch_bytes)

    def write(self, log: TransactionalLog, records: Sequence[Record], now_ms: int) -> tuple[int, int] | None:
        """Append a decision's records; returns first and last offset, None if the decision writes no record.

        Transactional records and markers are appended alone (`GroupMachine.alone`). Raises the log's errors.
        """
        first = records[0]
        if type(first) is Marker:
            end = first.key
            return log.append_marker(
                end.producer_id,
                end.producer_epoch,
                commit=end.committed,
                coordinator_epoch=first.coordinator_epoch,
                transaction_version=first.transaction_version,
                now_ms=now_ms,
            )
        if type(first) is TransactionalRecord:
            written = [record for record in records if type(record) is TransactionalRecord]
            largest = log.max_batch_bytes
            batches = encode_transactional(written, now_ms, codec=self._codec, max_batch_bytes=largest)
            return log.append_transactional(batches, now_ms, first.guard)
        batches = self.encode(records, now_ms, max_batch_bytes=log.max_batch_bytes)
        return log.append(batches, now_ms) if batches else None

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
