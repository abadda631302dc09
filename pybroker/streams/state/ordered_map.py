"""The interface of maps that keep the data of stores: what the byte stores need of memory and of RocksDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class OrderedMap(Protocol):
    """A map from bytes to bytes that iterates in the unsigned order of its keys."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""

    def remove(self, key: bytes) -> object:
        """Remove a key. The result has no meaning."""

    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool = True, include_upper: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator over the keys that exist now, and their values at the time each key is reached.

        The map can change during the iteration. Keys that are removed before the iterator reaches them are skipped.
        None is an open bound.
        """

    def clear(self) -> None:
        """Remove all keys."""

    @property
    def approximate_size(self) -> int:
        """The number of keys. RocksDB estimates this number."""


def increment(prefix: bytes) -> bytes | None:
    """Return the smallest bytes larger than all bytes with this prefix; None if there are none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
