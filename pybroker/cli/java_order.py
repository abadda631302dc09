"""The order in which Java's HashMap yields its entries: that of the lines which Kafka's tools print.

Owns the arithmetic alone: an entry lies in bucket `(h ^ h >>> 16) mod n` of a table of `n`, a power of two from 16 on
that is doubled when it is more than three quarters full; entries of one bucket keep the order in which they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def text_hash(text: str) -> int:
    """Return Java's `String.hashCode`, as a number without sign."""
    units = text.encode("utf-16-be")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code


def partition_hash(topic: str, partition: int) -> int:
    """Return the `hashCode` of Kafka's `TopicPartition`, as a number without sign."""
    return (31 * (31 + partition) + text_hash(topic)) & 0xFFFFFFFF


def in_java_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Return the items in the order of a HashMap that they were put into."""
    put = list(items)
    buckets = 16
    while len(put) > buckets * 3 // 4:
        buckets *= 2

    def bucket(item: T) -> int:
        code = hash_of(item)
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(put, key=bucket)
