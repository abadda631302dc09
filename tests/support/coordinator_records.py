"""Records of `__transaction_state` and `__consumer_offsets`, valid or deliberately invalid, packed by hand.

Shares nothing with `pybroker`. Source: Kafka's TransactionLogKey, TransactionLogValue, OffsetCommitKey,
OffsetCommitValue.
"""

from __future__ import annotations

import struct

from tests.support.batches import Record

EMPTY, ONGOING, COMPLETE_COMMIT = 0, 1, 4


def text(value: str) -> bytes:
    """Encode a string with a length prefix of two bytes."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def transaction_key(transactional_id: str) -> bytes:
    """Return the key of a transactional id's records."""
    return struct.pack(">h", 0) + text(transactional_id)


def transaction_value(status: int = EMPTY, producer_id: int = 1, version: int = 0) -> bytes:
    """Return the state of a transactional id without partitions, by default in version 0."""
    return struct.pack(">hqhibiqq", version, producer_id, 0, 60_000, status, -1, 0, -1)


def transaction_record(transactional_id: str, status: int = EMPTY, **named: int) -> Record:
    """Return a complete record of `__transaction_state`."""
    return Record(transaction_value(status, **named), transaction_key(transactional_id))


def offset_key(group: str, topic: str, partition: int = 0) -> bytes:
    """Return the key of a committed offset."""
    return struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)


def offset_record(group: str, topic: str, offset: int) -> Record:
    """Return a record with a committed offset of partition 0, in version 3."""
    value = struct.pack(">hqi", 3, offset, -1) + text("") + struct.pack(">q", 0)
    return Record(value, offset_key(group, topic))
