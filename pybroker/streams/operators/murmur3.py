"""The 128-bit hash of foreign-key joins: murmur3 for x64, with the seed of Kafka (`Murmur3.hash128`)."""

from __future__ import annotations

import struct

DEFAULT_SEED = 104729
_MASK = (1 << 64) - 1
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F
_BLOCK_SIZE = 16
_RESULT = struct.Struct(">QQ")


def hash128(data: bytes, seed: int = DEFAULT_SEED) -> bytes:
    """Return the hash of `data`: 16 bytes, each half big-endian as in the records of a foreign-key join."""
    first = second = seed
    size = len(data)
    body = size - size % _BLOCK_SIZE
    for low, high in struct.iter_unpack("<QQ", data[:body]):
        first ^= _mix_low(low)
        first = ((_rotate(first, 27) + second) * 5 + 0x52DCE729) & _MASK
        second ^= _mix_high(high)
        second = ((_rotate(second, 31) + first) * 5 + 0x38495AB5) & _MASK
    if body < size:
        low, high = struct.unpack("<QQ", data[body:].ljust(_BLOCK_SIZE, b"\0"))
        first ^= _mix_low(low)
        second ^= _mix_high(high)
    return _RESULT.pack(*_finish(first ^ size, second ^ size))


def _finish(first: int, second: int) -> tuple[int, int]:
    first = (first + second) & _MASK
    second = (second + first) & _MASK
    first, second = _avalanche(first), _avalanche(second)
    first = (first + second) & _MASK
    return first, (second + first) & _MASK


def _mix_low(block: int) -> int:
    return _rotate(block * _C1 & _MASK, 31) * _C2 & _MASK


def _mix_high(block: int) -> int:
    return _rotate(block * _C2 & _MASK, 33) * _C1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _avalanche(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _MASK
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
