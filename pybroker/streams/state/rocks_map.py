"""An ordered map in the database of a store: committed rows under the changes since the last commit."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from pybroker.streams.state.ordered_map import increment
from pybroker.streams.state.rocks import DELETED, RocksDatabase, Written


class RocksMap:
    """The keys of a database that begin with a prefix, without that prefix."""

    __slots__ = ("_changes", "_cleared", "_database", "_end", "_prefix", "_read", "_size")

    def __init__(self, database: RocksDatabase, prefix: bytes) -> None:
        end = increment(prefix)
        assert end is not None, "the first byte of a prefix is below 0xff"
        self._database = database
        self._prefix = prefix
        self._end = end
        self._size = len(prefix)
        self._changes = database.changes
        self._cleared = database.cleared
        self._read = database.read

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        return self._get(self._prefix + key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key. The next commit writes it."""
        self._database.write(self._prefix + key, value)

    def remove(self, key: bytes) -> None:
        """Remove a key. The next commit deletes it."""
        self._database.write(self._prefix + key, DELETED)

    def clear(self) -> None:
        """Remove all keys. The next commit deletes the range."""
        self._database.clear(self._prefix)

    @property
    def approximate_size(self) -> int:
        """The approximate number of keys in the whole database."""
        return self._database.approximate_keys

    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool = True, include_upper: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator over the keys that exist now, and their values at the time each key is reached.

        The map can change during the iteration, and a commit can happen. Keys that are removed before the iterator
        reaches them are skipped.
        """
        first = self._prefix + (lower or b"")
        last, included = (self._end, False) if upper is None else (self._prefix + upper, include_upper)
        changed = [(key, self._changes.get(key) is not DELETED) for key in self._changes.keys(first, last, included)]
        committed: Iterator[tuple[bytes, bytes]] = iter(())
        if self._prefix not in self._cleared:
            committed = self._database.scan(first if forward else last, forward)
        if not forward:
            changed.reverse()
        commits = self._database.commits
        return self._database.track(self._merged(changed, committed, (first, last, included), forward, commits))

    def _get(self, key: bytes) -> bytes | None:
        value = self._changes.get(key)
        if value is None:
            return None if self._cleared and self._prefix in self._cleared else self._read(key)
        return None if value is DELETED else value

    def _merged(
        self,
        changed: list[tuple[bytes, bool]],
        committed: Iterator[tuple[bytes, bytes]],
        limits: tuple[bytes, bytes, bool],
        forward: bool,
        commits: int,
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Merge the keys of the changes, with whether each exists, and the committed rows at the time of the call."""
        size = self._size
        advance = self._database.advance
        at = 0
        row = _within(advance(committed), limits, forward)
        if not forward and row is None:
            # A backward scan begins at an upper bound that is not included.
            row = _within(advance(committed), limits, forward)
        while at < len(changed) or row is not None:
            if row is not None and (at == len(changed) or _precedes(row[0], changed[at][0], forward)):
                key = row[0]
                value = self._current(key, row[1], commits)
                row = _within(advance(committed), limits, forward)
            else:
                key, exists = changed[at]
                at += 1
                if row is not None and row[0] == key:
                    row = _within(advance(committed), limits, forward)
                if not exists:
                    continue
                value = self._get(key)
            if value is not None:
                yield key[size:], value

    def _current(self, key: bytes, committed: bytes, commits: int) -> bytes | None:
        """Return the value of a key that had a committed value when the iteration began."""
        if self._database.commits != commits:
            return self._get(key)
        change: Written | None = self._changes.get(key)
        if change is None:
            return None if self._cleared and self._prefix in self._cleared else committed
        return None if change is DELETED else change


def _within(
    row: tuple[bytes, bytes] | None, limits: tuple[bytes, bytes, bool], forward: bool
) -> tuple[bytes, bytes] | None:
    """Return a row if it is inside of the limits, or None."""
    if row is None:
        return None
    first, last, included = limits
    key = row[0]
    if forward:
        return row if key < last or (included and key == last) else None
    return row if key >= first and (key < last or (included and key == last)) else None


def _precedes(key: bytes, other: bytes, forward: bool) -> bool:
    return key < other if forward else key > other
