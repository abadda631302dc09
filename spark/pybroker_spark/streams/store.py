"""The data of a store in a map state of Spark: reads go through, and changes are written at the end of the batch.

Owns the conversion from ordered maps to a map state, which has no order and no ranges. Must not know the keys of a
store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from pybroker.streams.records import Headers
from pybroker.streams.state.ordered_map import increment
from pybroker.streams.state.sorted_map import SortedMap


class MapRows(Protocol):
    """The part of Spark's `MapState` that a store uses. Keys and values are tuples of one binary field."""

    def getValue(self, key: tuple[bytes]) -> tuple[bytes] | None:
        """Return the value of a key, or None."""

    def updateValue(self, key: tuple[bytes], value: tuple[bytes]) -> None:
        """Set the value of a key."""

    def removeKey(self, key: tuple[bytes]) -> None:
        """Remove a key."""

    def iterator(self) -> Iterator[tuple[tuple[bytes], tuple[bytes]]]:
        """Return all keys and values, in the order of the state store."""


class StateDatabase:
    """The data of one store for one batch of one task.

    A read of a key is one call of the JVM, and is kept until the end of the batch. The first range, and the first
    removal of a whole prefix, load all rows of the store.
    """

    committed_offset: int | None = None
    uncommitted_bytes = 0

    def __init__(self, rows: MapRows, prefixes: Iterable[bytes] = ()) -> None:
        """`prefixes` are those of the last batch (`live_prefixes`)."""
        self._state = rows
        self._prefixes = set(prefixes)
        self._read: dict[bytes, bytes | None] = {}
        self._changes: dict[bytes, bytes | None] = {}
        self._all: SortedMap[bytes] | None = None

    def map(self, prefix: bytes) -> StateMap:
        """Return the map of the keys with a prefix."""
        return StateMap(self, prefix)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        if self._all is not None:
            return self._all.get(key)
        if key not in self._read:
            found = self._state.getValue((key,))
            self._read[key] = None if found is None else bytes(found[0])
        return self._read[key]

    def write(self, prefix: bytes, key: bytes, value: bytes | None) -> None:
        """Set a key with a prefix, or remove it if the value is None. `commit` writes the change."""
        if value is not None:
            self._prefixes.add(prefix)
        self._read[key] = self._changes[key] = value
        if self._all is None:
            return
        if value is None:
            self._all.remove(key)
        else:
            self._all.put(key, value)

    def clear(self, prefix: bytes) -> None:
        """Remove all keys with a prefix."""
        for key in self.rows().keys(prefix, increment(prefix), False):
            self.write(prefix, key, None)
        self._prefixes.discard(prefix)

    def rows(self) -> SortedMap[bytes]:
        """Return all rows with the changes of the batch. The first call loads them."""
        if self._all is None:
            loaded: SortedMap[bytes] = SortedMap()
            for (key,), (value,) in self._state.iterator():
                loaded.put(bytes(key), bytes(value))
            for key, change in self._changes.items():
                if change is None:
                    loaded.remove(key)
                else:
                    loaded.put(key, change)
            self._all = loaded
        return self._all

    @property
    def live_prefixes(self) -> list[bytes]:
        """The prefixes that can have rows, in order. The next batch gets them: a map state cannot seek them."""
        return sorted(self._prefixes)

    def prefixes(self, start: bytes, length: int) -> list[bytes]:
        """Return the prefixes of a length that begin with `start`."""
        return [prefix for prefix in self.live_prefixes if len(prefix) == length and prefix.startswith(start)]

    def commit(self, changelog_offset: int | None) -> None:  # noqa: ARG002 - Spark's checkpoint replaces the changelog
        """Write all changes to the state. Spark commits the state with the batch."""
        for key, value in self._changes.items():
            if value is None:
                self._state.removeKey((key,))
            else:
                self._state.updateValue((key,), (value,))
        self._changes.clear()

    def property_values(self) -> dict[str, float]:
        """Return nothing: Spark reports the metrics of its states."""
        return {}

    def close(self) -> None:
        """Forget what was read. Changes since the last commit are lost."""
        self._read.clear()
        self._changes.clear()
        self._all = None


class StateMap:
    """The keys of a database that begin with a prefix, without that prefix (`OrderedMap`)."""

    def __init__(self, database: StateDatabase, prefix: bytes) -> None:
        end = increment(prefix)
        assert end is not None, "the first byte of a prefix is below 0xff"
        self._database = database
        self._prefix = prefix
        self._end = end

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        return self._database.get(self._prefix + key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        self._database.write(self._prefix, self._prefix + key, value)

    def remove(self, key: bytes) -> None:
        """Remove a key."""
        self._database.write(self._prefix, self._prefix + key, None)

    def clear(self) -> None:
        """Remove all keys."""
        self._database.clear(self._prefix)

    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool = True, include_upper: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator over the keys that exist now, and their values at the time each key is reached."""
        size = len(self._prefix)
        first = self._prefix + (lower or b"")
        last, included = (self._end, False) if upper is None else (self._prefix + upper, include_upper)
        rows = self._database.rows().range(first, last, forward, included)
        return ((key[size:], value) for key, value in rows)

    @property
    def approximate_size(self) -> int:
        """The number of keys."""
        return len(self._database.rows().keys(self._prefix, self._end, False))


class ChangelogRow(msgspec.Struct, frozen=True, array_like=True):
    """A record of the changelog of a buffer, as it is kept in a map state."""

    value: bytes
    headers: list[tuple[str, bytes | None]]


class KeptChangelog:
    """The compacted changelog of a buffer in a map state: a buffer keeps its own data, and restores it from there."""

    def __init__(self, rows: MapRows) -> None:
        self._state = rows
        self._changes: dict[bytes, ChangelogRow | None] = {}

    def records(self) -> Iterator[tuple[bytes, bytes, Headers]]:
        """Return key, value and headers of each record."""
        for (key,), (packed,) in self._state.iterator():
            row = msgspec.msgpack.decode(packed, type=ChangelogRow)
            yield bytes(key), row.value, tuple(row.headers)

    def log(self, key: bytes, value: bytes | None, headers: Headers) -> None:
        """Replace the record of a key, or remove it if the value is None."""
        self._changes[key] = None if value is None else ChangelogRow(value, list(headers))

    def commit(self) -> None:
        """Write the changes to the state."""
        for key, row in self._changes.items():
            if row is None:
                self._state.removeKey((key,))
            else:
                self._state.updateValue((key,), (msgspec.msgpack.encode(row),))
        self._changes.clear()
