"""The iteration order of Java's HashMap.

Where Kafka's assignors iterate over a hash map, the order decides which member keeps a partition. A group may
contain members of either client, and each as leader must compute the same assignment, so the order is part of the
algorithm. Owns that order and the hashes of strings and partitions. Must not know assignors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from pybroker.client.administration.topics import TopicPartition

Key = TypeVar("Key")

_SMALLEST_TABLE = 16
_MASK = 0xFFFFFFFF


def string_hash(text: str) -> int:
    """Return `String.hashCode` as an unsigned number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _MASK
    return value


def partition_hash(partition: TopicPartition) -> int:
    """Return `TopicPartition.hashCode` as an unsigned number."""
    return (31 * (31 + partition.partition) + string_hash(partition.topic)) & _MASK


def bytes_hash(data: bytes) -> int:
    """Return `Arrays.hashCode` of bytes as an unsigned number."""
    value = 1
    for byte in data:
        value = (31 * value + (byte - 256 if byte > 127 else byte)) & _MASK
    return value


class HashOrderedSet(Generic[Key]):
    """A set with the order of Java's HashSet: by bucket, then by insertion. Its table grows and never shrinks."""

    def __init__(
        self, hash_of: Callable[[Key], int], keys: Iterable[Key] = (), *, smallest_table: int = _SMALLEST_TABLE
    ) -> None:
        self._hash_of = hash_of
        self._by_age: dict[Key, None] = {}
        self._table = smallest_table
        for key in keys:
            self.add(key)

    def add(self, key: Key) -> None:
        """Add a key; a key that exists keeps its position."""
        self._by_age[key] = None
        while len(self._by_age) > self._table * 3 // 4:
            self._table *= 2

    def remove(self, key: Key) -> None:
        """Remove a key."""
        del self._by_age[key]

    def clear(self) -> None:
        """Remove all keys. The table keeps its size."""
        self._by_age.clear()

    def first(self) -> Key:
        """Return the first key in iteration order."""
        return min(self._by_age, key=self._bucket)

    def __iter__(self) -> Iterator[Key]:
        return iter(sorted(self._by_age, key=self._bucket))

    def __len__(self) -> int:
        return len(self._by_age)

    def _bucket(self, key: Key) -> int:
        value = self._hash_of(key)
        return (value ^ value >> 16) & (self._table - 1)


def in_hash_order(names: Iterable[str]) -> list[str]:
    """Return names in the iteration order of a HashMap into which they were inserted in this order."""
    return list(HashOrderedSet(string_hash, names))
