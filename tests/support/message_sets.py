"""Messages of formats v0 and v1 as an old Kafka stored them, built by a slow twin of the product's code.

Shares nothing with `pybroker`. Clients send wrappers otherwise: it is brokers that give them their last offset.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafka.codec import gzip_encode, lz4_encode, lz4_encode_old_kafka, snappy_encode

from tests.support.batches import GZIP, LOG_APPEND_TIME, LZ4, SNAPPY


class OldMessage(NamedTuple):
    """A message with the offset that it has in the log; v0 has no timestamps."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = -1


def message(
    offset: int, magic: int, value: bytes | None, *, key: bytes | None = None, attributes: int = 0, timestamp: int = 77
) -> bytes:
    """The bytes of one message, which may be a wrapper."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def message_set(magic: int, codec: int, messages: Sequence[OldMessage], *, append_time: int | None = None) -> bytes:
    """Messages one by one, or with a codec in one wrapper; within a wrapper of v1 offsets count from 0 (KIP-31).

    With `append_time` the broker's time stands in each message, or in the wrapper alone.
    """
    kind = 0 if append_time is None else LOG_APPEND_TIME
    relative = messages[0].offset if codec and magic else 0
    inner = b"".join(
        message(
            one.offset - relative,
            magic,
            one.value,
            key=one.key,
            attributes=0 if codec else kind,
            timestamp=one.timestamp if append_time is None or codec else append_time,
        )
        for one in messages
    )
    if not codec:
        return inner
    latest = max(one.timestamp for one in messages) if append_time is None else append_time
    packed = _PACKERS[magic, codec](inner)
    return message(messages[-1].offset, magic, packed, attributes=codec | kind, timestamp=latest)


_PACKERS: dict[tuple[int, int], Callable[[bytes], bytes]] = {
    (0, GZIP): gzip_encode,
    (0, SNAPPY): snappy_encode,
    (0, LZ4): lz4_encode_old_kafka,
    (1, GZIP): gzip_encode,
    (1, SNAPPY): snappy_encode,
    (1, LZ4): lz4_encode,
}
"""lz4 in v0 has the checksum of its frame over the wrong bytes, as old clients wrote it."""
