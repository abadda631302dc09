"""The kernels in Python with its standard library alone."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from struct import Struct

from micro.kernels import Integers

MASK = (1 << 64) - 1
HEADER = Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, checksum, attributes, last offset delta, base and largest timestamp,
producer id and epoch, base sequence, record count."""
LOG_OVERHEAD = 12
CHECKSUM_AT = 17
CHECKSUM_COVERS = 21
ENTRY = Struct(">II")


def _table_of(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ 0x82F63B78 if byte & 1 else byte >> 1
    return byte


TABLE = [_table_of(byte) for byte in range(256)]


def zigzag(values: Integers) -> bytes:
    """See `Kernels.zigzag`."""
    return array("Q", [(value << 1 ^ value >> 63) & MASK for value in values]).tobytes()


def put_varint(out: bytearray, value: int) -> None:
    """Append a zigzag varint."""
    value = value << 1 ^ value >> 63
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def encode_varints(values: Integers) -> bytes:
    """See `Kernels.encode_varints`."""
    out = bytearray()
    for value in values:
        put_varint(out, value)
    return bytes(out)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a zigzag varint; the value and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
        shift += 7


def decode_varints(data: bytes) -> bytes:
    """See `Kernels.decode_varints`."""
    values = array("q")
    at, end = 0, len(data)
    try:
        while at < end:
            value, at = varint(data, at)
            values.append(value)
    except IndexError:
        raise ValueError("a varint is cut") from None
    return values.tobytes()


def crc32c(data: bytes) -> int:
    """See `Kernels.crc32c`."""
    crc, table = 0xFFFFFFFF, TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def build_batch(values: list[bytes], timestamp_ms: int) -> bytes:
    """See `Kernels.build_batch`."""
    out = bytearray(HEADER.size)
    for delta, value in enumerate(values):
        body = bytearray(b"\0\0")
        put_varint(body, delta)
        body.append(1)
        put_varint(body, len(value))
        put_varint(out, len(body) + len(value) + 1)
        out += body
        out += value
        out.append(0)
    return seal(out, len(values), timestamp_ms)


def seal(batch: bytearray, count: int, timestamp_ms: int) -> bytes:
    """Write the header over the front of a batch."""
    length = len(batch) - LOG_OVERHEAD
    HEADER.pack_into(batch, 0, 0, length, -1, 2, 0, 0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count)
    crc = crc32c(bytes(batch[CHECKSUM_COVERS:]))
    batch[CHECKSUM_AT:CHECKSUM_COVERS] = crc.to_bytes(4, "big")
    return bytes(batch)


def check_header(batch: bytes) -> tuple[int, int]:
    """Check all but the checksum; the checksum that the batch states, and the record count."""
    _base, length, _epoch, magic, crc, _attributes, last, *_times_and_producer, count = HEADER.unpack_from(batch)
    if magic != 2 or length != len(batch) - LOG_OVERHEAD or count != last + 1:
        raise ValueError("the header is wrong")
    return crc, count


def walk(batch: bytes, count: int) -> None:
    """Check every record of a batch."""
    at = HEADER.size
    for index in range(count):
        length, at = varint(batch, at)
        end = at + length
        _timestamp, at = varint(batch, at + 1)
        delta, at = varint(batch, at)
        key, at = varint(batch, at)
        value, at = varint(batch, at + max(key, 0))
        headers, at = varint(batch, at + max(value, 0))
        for _ in range(headers * 2):
            part, at = varint(batch, at)
            at += max(part, 0)
        if at != end or delta != index:
            raise ValueError(f"record {index} is wrong")
    if at != len(batch):
        raise ValueError("bytes after the last record")


def validate_batch(batch: bytes) -> int:
    """See `Kernels.validate_batch`."""
    crc, count = check_header(batch)
    if crc32c(batch[CHECKSUM_COVERS:]) != crc:
        raise ValueError("the checksum is wrong")
    try:
        walk(batch, count)
    except IndexError:
        raise ValueError("a record is cut") from None
    return count


def search_index(entries: bytes, relative_offset: int) -> int:
    """See `Kernels.search_index`."""

    def offset_of(entry: int) -> int:
        found: int = ENTRY.unpack_from(entries, entry * ENTRY.size)[0]
        return found

    after = bisect_right(range(len(entries) // ENTRY.size), relative_offset, key=offset_of)
    if after == 0:
        return 0
    position: int = ENTRY.unpack_from(entries, (after - 1) * ENTRY.size)[1]
    return position
