"""The partition of a group in `__consumer_offsets`.

partition = abs(String.hashCode(group)) mod partitions,   abs(Integer.MIN_VALUE) = 0
"""

from __future__ import annotations

from functools import lru_cache

_KEPT = 1 << 10
"""Number of groups whose partition is cached, about 300 bytes each: those that commit and heartbeat often."""


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`: s[0]*31^(n-1) + ... + s[n-1] over UTF-16 code units, in 32 bits signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@lru_cache(_KEPT)
def partition_of(group_id: str, partitions: int) -> int:
    """Return the group's partition, given the number of partitions."""
    value = java_hash(group_id)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
