"""The data of one store: ordered maps in memory, in the RocksDB database of the store, or in one of the runner."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from pybroker.streams.state.ordered_map import OrderedMap
from pybroker.streams.state.rocks import RocksDatabase, StoreNumbers
from pybroker.streams.state.rocks_map import RocksMap
from pybroker.streams.state.sorted_map import SortedMap

ENTRIES = b"\x01"
"""The first byte of the keys of entries and of segments."""
SECOND_INDEX = b"\x02"
"""The first byte of the keys of a second index."""
ROCKSDB = "rocksdb"
"""The directory of all databases of a task, with one subdirectory for each store."""


class StoreDatabase(Protocol):
    """A database of one store: `RocksDatabase`, or one that a runner attaches."""

    committed_offset: int | None
    """The changelog offset of the last commit."""

    @property
    def uncommitted_bytes(self) -> int:
        """The approximate memory of all changes since the last commit, in bytes."""

    def prefixes(self, start: bytes, length: int) -> list[bytes]:
        """Return the prefixes of a length that begin with `start` and that have committed keys."""

    def commit(self, changelog_offset: int | None) -> None:
        """Write all changes and the changelog offset as one unit. None keeps the offset of the last commit."""

    def property_values(self) -> dict[str, float]:
        """Return the properties of the database by Kafka's names of metrics; empty if it has none."""

    def close(self) -> None:
        """Close the database. Changes since the last commit are lost."""


class StoreMaps:
    """Makes the ordered maps of one store, and owns its database.

    The maps are in memory if the store is not persistent, or if the task has no directory.
    """

    def __init__(self, name: str, layout: str, persistent: bool) -> None:
        self.name = name
        self.layout = layout
        """The type of the store, and what else its keys depend on. A database of another layout is rejected."""
        self.wants_persistence = persistent
        """Whether the store is persistent under a task that has a directory."""
        self.numbers = StoreNumbers()
        self._database: StoreDatabase | None = None
        self._make_map: Callable[[bytes], OrderedMap] = _in_memory

    def attach(self, database: StoreDatabase, make_map: Callable[[bytes], OrderedMap]) -> None:
        """Keep the data in a database of the runner. A runner calls this before `open`, and sets `numbers`.

        Args:
            database: the database.
            make_map: returns the map of the keys with a prefix.
        """
        self._database, self._make_map = database, make_map

    def open(self, directory: Path | None) -> None:
        """Open the data of the store.

        Args:
            directory: the directory of the task; None for a task in memory.

        Raises:
            TaskCorruptedError: the database is damaged.
            ProcessorStateError: the database cannot be opened, or it has the layout of another store.
        """
        if self._database is None and directory is not None and self.wants_persistence:
            path = directory / ROCKSDB / self.name
            database = RocksDatabase(path, self.name, self.layout, self.numbers)
            self.attach(database, partial(RocksMap, database))

    def map(self, prefix: bytes) -> OrderedMap:
        """Return the map of the keys with a prefix. A map in memory is new and empty."""
        return self._make_map(prefix)

    def prefixes(self, start: bytes, length: int) -> list[bytes]:
        """Return the prefixes of a length that begin with `start` and that the database has keys of."""
        return [] if self._database is None else self._database.prefixes(start, length)

    @property
    def persistent(self) -> bool:
        """Whether the data is in a database."""
        return self._database is not None

    def commit(self, changelog_offset: int | None) -> None:
        """Write all changes since the last commit, and the changelog offset of the store, as one unit."""
        if self._database is not None:
            self._database.commit(changelog_offset)

    @property
    def committed_offset(self) -> int | None:
        """The changelog offset of the last commit; None for a new store and for a store in memory."""
        return None if self._database is None else self._database.committed_offset

    @property
    def uncommitted_bytes(self) -> int:
        """The approximate memory of all changes since the last commit, in bytes; 0 for a store in memory."""
        return 0 if self._database is None else self._database.uncommitted_bytes

    def property_values(self) -> dict[str, float]:
        """Return the properties of the database by Kafka's names of metrics; none for a store in memory."""
        return {} if self._database is None else self._database.property_values()

    def close(self) -> None:
        """Close the database. Changes since the last commit are lost."""
        if self._database is not None:
            self._database.close()
            self._database, self._make_map = None, _in_memory


def _in_memory(prefix: bytes) -> OrderedMap:  # noqa: ARG001 - the interface of `attach`
    return SortedMap()
