"""The kernels on NumPy's columns: one Python operation for many values, never one for a byte.

What is sequential by nature cannot be put so: the walk over the records of a batch is the pure one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from micro import pure_python
from micro.kernels import Integers

Column = NDArray[np.uint32]
TABLE: Column = np.array(pure_python.TABLE, dtype=np.uint32)
LANES = 256
"""Parts of the bytes whose checksums are computed side by side; a power of two."""


def _zigzag(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def zigzag(values: Integers) -> bytes:
    """See `Kernels.zigzag`."""
    return _zigzag(np.frombuffer(values, dtype=np.int64)).tobytes()


def _varints(coded: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Ten bytes for each number, and which of them it needs."""
    shifted = coded[:, None] >> np.arange(0, 70, 7, dtype=np.uint64)
    # A shift by 63 leaves one bit, so the tenth column is right although 64 is not reached.
    more = np.zeros(shifted.shape, dtype=bool)
    more[:, :-1] = shifted[:, 1:] != 0
    needed = np.ones(shifted.shape, dtype=bool)
    needed[:, 1:] = shifted[:, 1:] != 0
    return ((shifted & 0x7F) | (more.astype(np.uint64) << 7)).astype(np.uint8), needed


def encode_varints(values: Integers) -> bytes:
    """See `Kernels.encode_varints`."""
    columns, needed = _varints(_zigzag(np.frombuffer(values, dtype=np.int64)))
    return columns[needed].tobytes()


def decode_varints(data: bytes) -> bytes:
    """See `Kernels.decode_varints`."""
    coded = np.frombuffer(data, dtype=np.uint8)
    (ends,) = np.nonzero(coded < 0x80)
    if len(coded) and (len(ends) == 0 or ends[-1] != len(coded) - 1):
        raise ValueError("a varint is cut")
    begins = np.concatenate(([0], ends[:-1] + 1)).astype(np.int64)[: len(ends)]
    places = np.arange(len(coded)) - np.repeat(begins, ends - begins + 1)
    bits = (coded & 0x7F).astype(np.uint64) << (places * 7).astype(np.uint64)
    numbers = np.bitwise_or.reduceat(bits, begins) if len(begins) else bits
    signed = (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)
    return signed.tobytes()


@cache
def _after_zeroes(count: int) -> tuple[Column, ...]:
    """What `count` (a power of two) bytes of zero make of a checksum register: a table for each of its bytes."""
    every = np.arange(256, dtype=np.uint32)
    if count == 1:
        return tuple(TABLE[every] if byte == 0 else every << np.uint32(8 * byte - 8) for byte in range(4))
    half = _after_zeroes(count // 2)
    return tuple(_advance(table, half) for table in half)


def _advance(registers: Column, tables: tuple[Column, ...]) -> Column:
    low, second, third, high = tables
    advanced: Column = low[registers & 0xFF] ^ second[registers >> 8 & 0xFF]
    advanced ^= third[registers >> 16 & 0xFF] ^ high[registers >> 24]
    return advanced


def crc32c(data: bytes) -> int:
    """See `Kernels.crc32c`.

    The checksum is linear: lanes begin at 0, the register's first value is put into the first four bytes, and two
    neighbours make one by what as many zeroes as the right one has bytes do to the left one.
    """
    if len(data) < LANES:
        return pure_python.crc32c(data)
    steps = 1 << (-(-len(data) // LANES) - 1).bit_length()
    lanes = np.zeros(LANES * steps, dtype=np.uint8)
    begin = len(lanes) - len(data)
    lanes[begin:] = np.frombuffer(data, dtype=np.uint8)
    lanes[begin : begin + 4] ^= 0xFF
    registers: Column = np.zeros(LANES, dtype=np.uint32)
    for column in np.ascontiguousarray(lanes.reshape(LANES, steps).T):
        registers = TABLE[(registers ^ column) & 0xFF] ^ registers >> 8
    while len(registers) > 1:
        registers = _advance(registers[0::2], _after_zeroes(steps)) ^ registers[1::2]
        steps *= 2
    return int(registers[0]) ^ 0xFFFFFFFF


def build_batch(values: list[bytes], timestamp_ms: int) -> bytes:
    """See `Kernels.build_batch`; values of one size, so that records whose deltas are equally long are rows."""
    size = len(values[0])
    matrix = np.frombuffer(b"".join(values), dtype=np.uint8).reshape(len(values), size)
    columns, needed = _varints(_zigzag(np.arange(len(values), dtype=np.int64)))
    lengths = needed.sum(axis=1)
    value_length = bytearray()
    pure_python.put_varint(value_length, size)
    parts = [bytes(pure_python.HEADER.size)]
    for width in np.unique(lengths):
        rows = lengths == width
        front = bytearray()
        pure_python.put_varint(front, 4 + int(width) + len(value_length) + size)
        front += b"\0\0"
        record = np.zeros((int(rows.sum()), len(front) + width + 1 + len(value_length) + size + 1), dtype=np.uint8)
        record[:, : len(front)] = np.frombuffer(front, dtype=np.uint8)
        at = len(front) + int(width)
        record[:, len(front) : at] = columns[rows, :width]
        record[:, at : at + 1 + len(value_length)] = np.frombuffer(b"\x01" + value_length, dtype=np.uint8)
        record[:, -1 - size : -1] = matrix[rows]
        parts.append(record.tobytes())
    batch = bytearray().join(parts)
    length, count = len(batch) - pure_python.LOG_OVERHEAD, len(values)
    times_and_producer = (timestamp_ms, timestamp_ms, -1, -1, -1)
    pure_python.HEADER.pack_into(batch, 0, 0, length, -1, 2, 0, 0, count - 1, *times_and_producer, count)
    crc = crc32c(bytes(batch[pure_python.CHECKSUM_COVERS :]))
    batch[pure_python.CHECKSUM_AT : pure_python.CHECKSUM_COVERS] = crc.to_bytes(4, "big")
    return bytes(batch)


def validate_batch(batch: bytes) -> int:
    """See `Kernels.validate_batch`."""
    crc, count = pure_python.check_header(batch)
    if crc32c(batch[pure_python.CHECKSUM_COVERS :]) != crc:
        raise ValueError("the checksum is wrong")
    try:
        pure_python.walk(batch, count)
    except IndexError:
        raise ValueError("a record is cut") from None
    return count


def search_index(entries: bytes, relative_offset: int) -> int:
    """See `Kernels.search_index`."""
    columns = np.frombuffer(entries, dtype=">u4").reshape(-1, 2)
    after = int(np.searchsorted(columns[:, 0], relative_offset, side="right"))
    return int(columns[after - 1, 1]) if after else 0
