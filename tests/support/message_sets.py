"""Messages of formats v0 and v1 as old Kafka brokers stored them, built by a slow independent implementation.

Shares nothing with `pybroker`. A wrapper has the offset of its last message, which brokers assign, not clients.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafka.codec import gzip_encode, lz4_encode, lz4_encode_old_kafka, snappy_encode

from tests.support.batches import GZIP, LOG_APPEND_TIME, LZ4, SNAPPY


class OldMessage(NamedTuple):
    """A message and its offset in the log. Format v0 has no timestamps."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = -1


def message(
    offset: int, magic: int, value: bytes | None, *, key: bytes | None = None, attributes: int = 0, timestamp: int = 77
) -> bytes:
    """Return the bytes of one message, which may be a wrapper."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def message_set(magic: int, codec: int, messages: Sequence[OldMessage], *, append_time: int | None = None) -> bytes:
    """Return single messages, or with a codec one wrapper of them. Offsets in a v1 wrapper start at 0 (KIP-31).

    With `append_time`, each message, or only the wrapper, has the broker's timestamp.
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
"""Compressors by magic and codec. lz4 in v0 has the wrong frame checksum that old clients computed."""
