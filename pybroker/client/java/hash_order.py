"""The order in which Java's HashMap yields its keys.

Where Kafka's assignors walk through a hash map, who comes first decides who keeps a partition. Members of one group may
run either client, and whichever leads has to come to the same result; so the order is part of the algorithm. Owns that
order; knows what strings and partitions hash to, and no assignor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from pybroker.client.administration.topics import TopicPartition

Key = TypeVar("Key")

_SMALLEST_TABLE = 16
_MASK = 0xFFFFFFFF


def string_hash(text: str) -> int:
    """`String.hashCode` as an unsigned number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _MASK
    return value


def partition_hash(partition: TopicPartition) -> int:
    """`TopicPartition.hashCode` as an unsigned number."""
    return (31 * (31 + partition.partition) + string_hash(partition.topic)) & _MASK


class HashOrderedSet(Generic[Key]):
    """A set walked as Java's HashSet is: by bucket, and within one by age. Its table grows and never shrinks."""

    def __init__(
        self, hash_of: Callable[[Key], int], keys: Iterable[Key] = (), *, smallest_table: int = _SMALLEST_TABLE
    ) -> None:
        self._hash_of = hash_of
        self._by_age: dict[Key, None] = {}
        self._table = smallest_table
        for key in keys:
            self.add(key)

    def add(self, key: Key) -> None:
        """Put a key in; one that is there keeps its age."""
        self._by_age[key] = None
        while len(self._by_age) > self._table * 3 // 4:
            self._table *= 2

    def remove(self, key: Key) -> None:
        """Take a key out."""
        del self._by_age[key]

    def first(self) -> Key:
        """The key that a walk begins with."""
        return min(self._by_age, key=self._bucket)

    def __iter__(self) -> Iterator[Key]:
        return iter(sorted(self._by_age, key=self._bucket))

    def __len__(self) -> int:
        return len(self._by_age)

    def _bucket(self, key: Key) -> int:
        value = self._hash_of(key)
        return (value ^ value >> 16) & (self._table - 1)


def in_hash_order(names: Iterable[str]) -> list[str]:
    """Names as a HashMap yields them that they were put in one by one."""
    return list(HashOrderedSet(string_hash, names))
