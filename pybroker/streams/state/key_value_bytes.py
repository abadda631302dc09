"""Key-value stores of bytes: the data, and the layers that log changes and cache entries."""

from __future__ import annotations

import abc
from collections.abc import Iterator

from pybroker.streams.records import Headers
from pybroker.streams.state.cache import BytesListener, merge_cached
from pybroker.streams.state.caching import CachingLayer, current_context
from pybroker.streams.state.store import StoreContext
from pybroker.streams.state.store_maps import ENTRIES, StoreMaps
from pybroker.streams.state.values import LONG


class KeyValueBytes(abc.ABC):
    """A store of bytes by key, ordered by key."""

    def init(self, context: StoreContext) -> None:  # noqa: B027 - a store in memory needs no context
        """Open the store."""

    @abc.abstractmethod
    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""

    @abc.abstractmethod
    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key, or delete the key if the value is None."""

    @abc.abstractmethod
    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool = True, include_upper: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator over the entries from `lower` to `upper`. None is an open bound."""

    @property
    @abc.abstractmethod
    def approximate_num_entries(self) -> int:
        """The number of entries in the store, without those that only the cache contains."""

    @abc.abstractmethod
    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Apply a record of the changelog."""

    def set_flush_listener(self, listener: BytesListener, send_old_values: bool) -> bool:  # noqa: ARG002 - the layer has no cache or no headers
        """Set the receiver of flushed entries. Returns False if the store has no cache."""
        return False

    def flush_cache(self) -> None:  # noqa: B027 - only the caching layer has a cache
        """Flush the cache."""

    @abc.abstractmethod
    def close(self) -> None:
        """Flush the cache and release the data."""


class StoredKeyValueBytes(KeyValueBytes):
    """The data of a key-value store, in one ordered map."""

    def __init__(self, maps: StoreMaps, timestamped: bool) -> None:
        self._maps = maps
        self._entries = maps.map(ENTRIES)
        self._timestamped = timestamped

    def init(self, context: StoreContext) -> None:
        """Open the data."""
        self._maps.open(context.state_directory)
        self._entries = self._maps.map(ENTRIES)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        return self._entries.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key, or delete the key if the value is None."""
        if value is None:
            self._entries.remove(key)
        else:
            self._entries.put(key, value)

    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool = True, include_upper: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator over the entries from `lower` to `upper`."""
        return self._entries.range(lower, upper, forward, include_upper)

    @property
    def approximate_num_entries(self) -> int:
        """The number of entries."""
        return self._entries.approximate_size

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:  # noqa: ARG002 - the layer has no cache or no headers
        """Apply a record of the changelog. The value of a timestamped store gets the timestamp of the record."""
        self.put(key, LONG.pack(timestamp) + value if value is not None and self._timestamped else value)

    def close(self) -> None:
        """Release the data."""
        if not self._maps.persistent:
            self._entries.clear()
        self._maps.close()


class KeyValueLayer(KeyValueBytes):
    """A layer that passes reads to the store below."""

    def __init__(self, inner: KeyValueBytes) -> None:
        self.inner = inner

    def init(self, context: StoreContext) -> None:
        """Open the store below."""
        self.inner.init(context)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        return self.inner.get(key)

    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool = True, include_upper: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator over the entries from `lower` to `upper`."""
        return self.inner.range(lower, upper, forward, include_upper)

    @property
    def approximate_num_entries(self) -> int:
        """The number of entries of the store below."""
        return self.inner.approximate_num_entries

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Apply a record of the changelog to the store below."""
        self.inner.restore(key, value, timestamp, headers)

    def close(self) -> None:
        """Close the store below."""
        self.inner.close()


class LoggedKeyValueBytes(KeyValueLayer):
    """Appends each update to the changelog (`ChangeLoggingKeyValueBytesStore` and its timestamped variant).

    The changelog of a timestamped store has the plain value. The record's timestamp is the timestamp of the value.
    A delete has the timestamp of the current record.
    """

    def __init__(self, inner: KeyValueBytes, name: str, timestamped: bool, logs_headers: bool) -> None:
        super().__init__(inner)
        self._name = name
        self._timestamped = timestamped
        self._logs_headers = logs_headers
        self._context: StoreContext | None = None

    def init(self, context: StoreContext) -> None:
        """Open the store below."""
        self._context = context
        super().init(context)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key and log it."""
        self.inner.put(key, value)
        log_value(self._context, self._name, (key, value), self._timestamped, self._logs_headers)


def log_value(
    context: StoreContext | None,
    store_name: str,
    entry: tuple[bytes, bytes | None],
    timestamped: bool,
    logs_headers: bool,
) -> None:
    """Append one update to a changelog, in the format of timestamped or of plain values."""
    assert context is not None
    key, value = entry
    current = current_context(context)
    headers = current.headers if logs_headers else ()
    if timestamped and value is not None:
        context.log_change(store_name, key, value[8:], LONG.unpack_from(value)[0], headers)
    else:
        context.log_change(store_name, key, value, current.timestamp, headers)


class CachedKeyValueBytes(KeyValueLayer):
    """Keeps updates in the cache of the task until a flush (`CachingKeyValueStore`)."""

    def __init__(self, inner: KeyValueBytes) -> None:
        super().__init__(inner)
        self._layer = CachingLayer(inner.get, inner.put)

    def init(self, context: StoreContext) -> None:
        """Open the cache and the store below."""
        self._layer.init(context)
        super().init(context)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None. A value from the store below enters the cache."""
        entry = self._layer.get(key)
        if entry is not None:
            return entry.value
        value = self.inner.get(key)
        if value is not None:
            self._layer.add_clean(key, value)
        return value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key in the cache. None is a tombstone."""
        self._layer.put(key, value)

    def range(
        self, lower: bytes | None, upper: bytes | None, forward: bool = True, include_upper: bool = True
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return an iterator over the entries of the cache and the store below."""
        stored = self.inner.range(lower, upper, forward, include_upper)
        if self._layer.cache is None:
            return stored
        return merge_cached(self._layer.cache.range(lower, upper, forward, include_upper), stored, forward)

    def set_flush_listener(self, listener: BytesListener, send_old_values: bool) -> bool:
        """Set the receiver of flushed entries. Returns False if the task has no cache."""
        return self._layer.set_listener(listener, send_old_values)

    def flush_cache(self) -> None:
        """Flush the cache."""
        self._layer.flush()

    def close(self) -> None:
        """Flush the cache and close the store below."""
        self._layer.close()
        super().close()
