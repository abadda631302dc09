"""The base class of state stores, and the context that a task passes to each store."""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Any

from pybroker.streams.records import Headers, RecordContext
from pybroker.streams.serdes import Serde
from pybroker.streams.state.cache import Cache
from pybroker.streams.state.store_maps import StoreMaps


class StoreContext(abc.ABC):
    """The part of a task that its stores use. The runtime implements this class."""

    application_id: str
    default_key_serde: Serde[Any] | None
    default_value_serde: Serde[Any] | None
    state_directory: Path | None = None
    """The directory of the task, for the databases of persistent stores; None keeps all stores in memory."""

    @property
    @abc.abstractmethod
    def record_context(self) -> RecordContext | None:
        """The context of the record that the task is processing; None outside of processing."""

    @abc.abstractmethod
    def set_record_context(self, context: RecordContext | None) -> None:
        """Replace the context of the current record. A caching store sets the context of each entry that it flushes."""

    @property
    @abc.abstractmethod
    def stream_time(self) -> int:
        """The largest timestamp that the task has processed, in milliseconds; -1 before the first record."""

    @property
    @abc.abstractmethod
    def cache(self) -> Cache | None:
        """The cache of the task (`statestore.cache.max.bytes`); None if caching is disabled."""

    @abc.abstractmethod
    def changelog_topic(self, store_name: str) -> str:
        """Return the changelog topic of a store: `<application id>-<store>-changelog`, or its source topic."""

    @abc.abstractmethod
    def log_change(
        self, store_name: str, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers
    ) -> None:
        """Append a record to the changelog of a store.

        Args:
            store_name: the store.
            key: the key of the changelog record.
            value: the value; None for a tombstone.
            timestamp: milliseconds since the epoch; None for the producer's current time.
            headers: the headers of the changelog record.
        """


class StateStore(abc.ABC):
    """A store of one task. It owns its data from `init` to `close`."""

    name: str
    is_open: bool = False
    maps: StoreMaps | None = None
    """The data of the store; None for a buffer and for a store of a program, which keep their data themselves."""

    @property
    def persistent(self) -> bool:
        """Whether the data survives a restart of the process without the changelog. It is known after `init`."""
        return self.maps is not None and self.maps.persistent

    @property
    def committed_offset(self) -> int | None:
        """The changelog offset of the last commit; None for a new store and for a store in memory.

        The runner restores the changelog from this offset on. It is the offset that `commit` received.
        """
        return None if self.maps is None else self.maps.committed_offset

    @property
    def uncommitted_bytes(self) -> int:
        """The approximate memory of changes since the last commit, in bytes; 0 for a store in memory."""
        return 0 if self.maps is None else self.maps.uncommitted_bytes

    def commit(self, changelog_offset: int | None) -> None:
        """Write all changes since the last commit and the changelog offset to the database, as one unit.

        A store in memory does nothing. The cache of the store is not flushed: call `flush` before.

        Args:
            changelog_offset: the first offset of the changelog that the store does not contain; None keeps the offset
                of the last commit, for example of a store without a changelog.

        Raises:
            ProcessorStateError: the database cannot be written.
            TaskCorruptedError: the database is damaged.
        """
        if self.maps is not None:
            self.maps.commit(changelog_offset)

    @abc.abstractmethod
    def init(self, context: StoreContext) -> None:
        """Open the store, and take default serdes from the context where the builder has none."""

    def flush_cache(self) -> None:  # noqa: B027 - most stores have no cache
        """Write the entries of the cache to the store, and call the flush listener for each. The cache stays valid."""

    def flush(self) -> None:
        """Flush the cache, then write delayed records to the changelog. A task calls this before it commits."""
        self.flush_cache()

    @abc.abstractmethod
    def close(self) -> None:
        """Flush the cache and release the data. Changes since the last commit are lost in a persistent store."""

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:
        """Apply one record of the changelog. Nothing is logged and no listener is called.

        Raises:
            NotImplementedError: the store has no changelog.
        """
        raise NotImplementedError(f"store {self.name!r} has no changelog")
