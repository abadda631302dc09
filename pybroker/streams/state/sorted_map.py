"""A map from bytes to values that iterates in the order of its keys, as RocksDB does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

V = TypeVar("V")

FEW = 64
"""Up to this number of new keys, inserting each key is faster than sorting all keys."""


class SortedMap(Generic[V]):
    """A dict with a sorted list of its keys. New keys are sorted in by the next range.

    The order of keys is unsigned and lexicographic, which is the order of Python's bytes and of RocksDB.
    """

    __slots__ = ("_added", "_keys", "_values")

    def __init__(self) -> None:
        self._values: dict[bytes, V] = {}
        self._keys: list[bytes] = []
        self._added: dict[bytes, None] = {}

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._values)

    @property
    def approximate_size(self) -> int:
        """The number of keys."""
        return len(self._values)

    def get(self, key: bytes) -> V | None:
        """Return the value of a key, or None."""
        return self._values.get(key)

    def put(self, key: bytes, value: V) -> None:
        """Set the value of a key."""
        if key not in self._values:
            self._added[key] = None
        self._values[key] = value

    def remove(self, key: bytes) -> V | None:
        """Remove a key and return its value, or None."""
        value = self._values.pop(key, None)
        if value is not None and self._added.pop(key, self) is self:
            del self._keys[bisect_left(self._keys, key)]
        return value

    def clear(self) -> None:
        """Remove all keys."""
        self._values.clear()
        self._keys.clear()
        self._added.clear()

    def first(self) -> bytes | None:
        """Return the smallest key, or None."""
        self._sort()
        return self._keys[0] if self._keys else None

    def at_least(self, key: bytes) -> bytes | None:
        """Return the smallest key that is not smaller than `key`, or None."""
        self._sort()
        index = bisect_left(self._keys, key)
        return self._keys[index] if index < len(self._keys) else None

    def keys(self, lower: bytes | None, upper: bytes | None, include_upper: bool = True) -> list[bytes]:
        """Return the keys from `lower` to `upper`, in ascending order. None is an open bound."""
        self._sort()
        start = 0 if lower is None else bisect_left(self._keys, lower)
        if upper is None:
            return self._keys[start:]
        end = bisect_right(self._keys, upper) if include_upper else bisect_left(self._keys, upper)
        return self._keys[start:end]

    def items(self) -> Iterable[tuple[bytes, V]]:
        """Return the keys and values, in no order."""
        return self._values.items()

    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool = True, include_upper: bool = True
    ) -> Iterator[tuple[bytes, V]]:
        """Return an iterator over the keys that exist now, and their values at the time each key is reached.

        The map can change during the iteration. Keys that are removed before the iterator reaches them are skipped.
        """
        keys = self.keys(lower, upper, include_upper)
        if not forward:
            keys.reverse()
        values = self._values
        return ((key, value) for key in keys if (value := values.get(key)) is not None)

    def _sort(self) -> None:
        if not self._added:
            return
        if len(self._added) <= FEW:
            for key in self._added:
                insort(self._keys, key)
        else:
            self._keys.extend(self._added)
            self._keys.sort()
        self._added.clear()
