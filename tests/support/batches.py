"""Record batches of format v2, valid or deliberately invalid, built and read by a slow independent implementation.

Shares nothing with `pybroker`, so that tests check the broker's encoding against independent code.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
AFTER_CRC = 21
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 8, 16, 32


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with its timestamp and offset relative to the base of the batch."""

    value: bytes | None = b"value"
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_delta: int = 0
    offset_delta: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as a producer sends it. Every field of the header can be overridden, also with an invalid value.

    `crc`, `length`, `count` and `last_offset_delta` are computed by default. `section` replaces the encoded records
    (for compressed data).
    """

    records: Sequence[Record] = field(default_factory=lambda: (Record(),))
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    attributes: int = 0
    base_timestamp: int = field(default_factory=lambda: int(time.time() * 1000))
    max_timestamp: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    crc: int | None = None
    length: int | None = None
    count: int | None = None
    last_offset_delta: int | None = None
    section: bytes | None = None

    def encode(self) -> bytes:
        """Return the bytes on the wire."""
        section = self.section
        if section is None:
            section = b"".join(encode_record(record, index) for index, record in enumerate(self.records))
        count = len(self.records) if self.count is None else self.count
        latest = max((record.timestamp_delta for record in self.records), default=0) + self.base_timestamp
        after_crc = struct.pack(
            ">hiqqqhii",
            self.attributes,
            len(self.records) - 1 if self.last_offset_delta is None else self.last_offset_delta,
            self.base_timestamp,
            latest if self.max_timestamp is None else self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            count,
        )
        crc = crc32c.crc32c(after_crc + section) if self.crc is None else self.crc
        length = 9 + len(after_crc) + len(section) if self.length is None else self.length
        return struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, self.magic, crc) + after_crc + section


def batch_of(*values: bytes, **header: int) -> bytes:
    """Return the bytes of a batch of records without keys."""
    return replace(Batch(tuple(Record(value) for value in values)), **header).encode()  # type: ignore[arg-type]


def end_marker(producer_id: int, producer_epoch: int, coordinator_epoch: int, *, commit: bool, **header: int) -> bytes:
    """Return the bytes of the control batch that ends a transaction."""
    record = Record(struct.pack(">hi", 0, coordinator_epoch), struct.pack(">hh", 0, int(commit)))
    marker = Batch(
        (record,), attributes=TRANSACTIONAL | CONTROL, producer_id=producer_id, producer_epoch=producer_epoch
    )
    return replace(marker, **header).encode()  # type: ignore[arg-type]


def encode_record(record: Record, index: int) -> bytes:
    """Encode one record with a length prefix."""
    body = bytearray(b"\0")
    body += varint(record.timestamp_delta)
    body += varint(index if record.offset_delta is None else record.offset_delta)
    for part in (record.key, record.value):
        body += varint(-1) if part is None else varint(len(part)) + part
    body += varint(len(record.headers))
    for name, value in record.headers:
        body += varint(len(name.encode())) + name.encode()
        body += varint(-1) if value is None else varint(len(value)) + value
    return varint(len(body)) + bytes(body)


def varint(value: int) -> bytes:
    """Encode a zigzag varint: seven bits a byte, least significant first."""
    rest = (value << 1) ^ (value >> 63)
    rest &= (1 << 64) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """A batch as stored in the log: the fields of its header and its raw bytes."""

    base_offset: int
    leader_epoch: int
    attributes: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    raw: bytes

    @property
    def crc_holds(self) -> bool:
        """Whether the checksum matches the bytes."""
        (crc,) = struct.unpack_from(">I", self.raw, 17)
        return bool(crc == crc32c.crc32c(self.raw[AFTER_CRC:]))

    @property
    def values(self) -> list[bytes | None]:
        """The values of an uncompressed batch."""
        section, found, position = self.raw[HEADER.size :], [], 0
        for _ in range(self.count):
            size, position = read_varint(section, position)
            end = position + size
            position += 1
            for _ in range(2):
                _, position = read_varint(section, position)
            length, position = read_varint(section, position)
            position += max(length, 0)
            length, position = read_varint(section, position)
            found.append(None if length < 0 else section[position : position + length])
            position = end
        return found


def read_batches(data: bytes) -> list[ReadBatch]:
    """Return every complete batch of a Fetch response or a segment. Ignores a truncated last batch."""
    found, position = [], 0
    while len(data) - position >= HEADER.size:
        (
            base,
            length,
            epoch,
            magic,
            _,
            attributes,
            last_delta,
            first,
            latest,
            producer,
            producer_epoch,
            sequence,
            count,
        ) = HEADER.unpack_from(data, position)
        end = position + 12 + length
        if end > len(data):
            break
        assert magic == 2
        raw = bytes(data[position:end])
        found.append(
            ReadBatch(
                base,
                epoch,
                attributes,
                base + last_delta,
                first,
                latest,
                producer,
                producer_epoch,
                sequence,
                count,
                raw,
            )
        )
        position = end
    return found


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint and the position after it."""
    value, shift = 0, 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
