"""The hash with which Kafka's producers and streams choose the partition of a key (`Utils.murmur2`)."""

from __future__ import annotations

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash of bytes as an unsigned number."""
    value = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        part = (part ^ part >> 24) * _M & _MASK
        value = value * _M & _MASK ^ part
    if rest := data[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key, of a topic with this number of partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
