"""Window stores of bytes: the data, and the layers that log changes and cache entries.

Iteration, expiry and retention follow Kafka's RocksDB stores (`RocksDBWindowStore`, and `RocksDBTimeOrderedWindowStore`
for stores in time order), because the DSL uses those by default. Kafka's in-memory store iterates by time first.
"""

from __future__ import annotations

import abc
import struct
from collections.abc import Iterator

import msgspec

from pybroker.streams.records import Change, Headers, Record
from pybroker.streams.state.cache import BytesListener, CacheEntry, merge_cached
from pybroker.streams.state.caching import CachingLayer
from pybroker.streams.state.key_value_bytes import log_value
from pybroker.streams.state.segments import Segments
from pybroker.streams.state.store import StoreContext
from pybroker.streams.state.store_maps import ENTRIES, StoreMaps
from pybroker.streams.state.values import INT, LONG
from pybroker.streams.windows import MAX_TIMESTAMP

START_AND_NUMBER = struct.Struct(">qi")
LAST_NUMBER = 0x7FFFFFFF

WindowRow = tuple[bytes, int, bytes]
"""A key, the start of a window in milliseconds, and a value."""


class WindowQuery(msgspec.Struct, frozen=True):
    """Keys and window starts to read, all bounds included. None is an open bound of keys; times are milliseconds."""

    key_from: bytes | None
    key_to: bytes | None
    time_from: int
    time_to: int
    forward: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether the bounds exclude every key."""
        return self.key_from is not None and self.key_to is not None and self.key_from > self.key_to

    def contains(self, key: bytes, start: int) -> bool:
        """Return whether a window of a key is inside the bounds."""
        return (
            self.time_from <= start <= self.time_to
            and (self.key_from is None or key >= self.key_from)
            and (self.key_to is None or key <= self.key_to)
        )


class WindowLayout(msgspec.Struct, frozen=True):
    """How the data of a window store is kept. Times are in milliseconds."""

    retention_ms: int
    segment_interval_ms: int
    retains_duplicates: bool = False
    time_ordered: bool = False
    timestamped: bool = False


def window_key(key: bytes, start: int, number: int) -> bytes:
    """Return the key of a window in the store and its changelog: key, 8-byte start, 4-byte sequence number."""
    return key + START_AND_NUMBER.pack(start, number)


class WindowBytes(abc.ABC):
    """A store of bytes by key and start of the window."""

    def init(self, context: StoreContext) -> None:  # noqa: B027 - a store in memory needs no context
        """Open the store."""

    @abc.abstractmethod
    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Set the value of a window, or delete it if the value is None."""

    @abc.abstractmethod
    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Return the value of a window, or None."""

    @abc.abstractmethod
    def scan(self, query: WindowQuery) -> Iterator[WindowRow]:
        """Return an iterator over the rows of a query."""

    @abc.abstractmethod
    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Apply a record of the changelog."""

    def set_flush_listener(self, listener: BytesListener, send_old_values: bool) -> bool:  # noqa: ARG002 - the layer has no cache or no headers
        """Set the receiver of flushed entries; keys are window keys. Returns False if the store has no cache."""
        return False

    def flush_cache(self) -> None:  # noqa: B027 - only the caching layer has a cache
        """Flush the cache."""

    @abc.abstractmethod
    def close(self) -> None:
        """Flush the cache and release the data."""


class StoredWindowBytes(WindowBytes):
    """The data of a window store, in segments.

    A window is readable while its start is later than the largest start minus the retention (strict retention). A
    store in time order also reads the window that starts exactly one retention earlier. Writes to a live segment
    succeed even if the window is not readable any more.
    """

    def __init__(self, maps: StoreMaps, layout: WindowLayout) -> None:
        self._maps = maps
        self._layout = layout
        self._time_ordered = layout.time_ordered
        self._segments = Segments(maps, ENTRIES, layout.retention_ms, layout.segment_interval_ms)
        self._numbers = maps.numbers

    def init(self, context: StoreContext) -> None:
        """Open the data."""
        self._maps.open(context.state_directory)
        self._segments.open()

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Set the value of a window. With duplicates each put adds a row, and a delete does nothing."""
        if self._layout.retains_duplicates:
            if value is None:
                return
            self._numbers.sequence = (self._numbers.sequence + 1) & LAST_NUMBER
        self._write(key, start, self._numbers.sequence, value)

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Return the value of a window, or None. With duplicates only the row of the last put can be found."""
        if start < self._oldest():
            return None
        segment = self._segments.find(start)
        return segment.get(self._pack(key, start, self._numbers.sequence)) if segment is not None else None

    def scan(self, query: WindowQuery) -> Iterator[WindowRow]:
        """Return an iterator over the rows of a query: by segment, and inside a segment by key or by time first."""
        first = max(query.time_from, self._oldest())
        if query.is_empty or query.time_to < first:
            return iter(())
        query = msgspec.structs.replace(query, time_from=first)
        lower, upper = self._bounds(query)
        parts = [
            segment.range(lower, upper, query.forward)
            for _, segment in self._segments.between(first, query.time_to, query.forward)
        ]
        return self._rows(parts, query)

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:  # noqa: ARG002 - the layer has no cache or no headers
        """Apply a record of the changelog. The value of a timestamped store gets the timestamp of the record."""
        start, number = START_AND_NUMBER.unpack_from(key, len(key) - 12)
        if value is not None and self._layout.timestamped:
            value = LONG.pack(timestamp) + value
        self._numbers.sequence = max(self._numbers.sequence, number)
        self._write(key[:-12], start, number, value)

    def close(self) -> None:
        """Release the data."""
        self._segments.close()
        self._maps.close()

    def _oldest(self) -> int:
        return self._numbers.stream_time - self._layout.retention_ms + (0 if self._time_ordered else 1)

    def _write(self, key: bytes, start: int, number: int, value: bytes | None) -> None:
        self._numbers.stream_time = stream_time = max(self._numbers.stream_time, start)
        segment = self._segments.create_if_live(self._segments.number(start), stream_time)
        if segment is None:
            return
        if value is None:
            segment.remove(self._pack(key, start, number))
        else:
            segment.put(self._pack(key, start, number), value)

    def _pack(self, key: bytes, start: int, number: int) -> bytes:
        if self._time_ordered:
            return LONG.pack(start) + key + INT.pack(number)
        return key + START_AND_NUMBER.pack(start, number)

    def _unpack(self, row: bytes) -> tuple[bytes, int]:
        if self._time_ordered:
            return row[8:-4], LONG.unpack_from(row)[0]
        return row[:-12], LONG.unpack_from(row, len(row) - 12)[0]

    def _bounds(self, query: WindowQuery) -> tuple[bytes | None, bytes | None]:
        """Return bounds of packed keys that contain all rows of the query, and possibly others."""
        first, last = max(query.time_from, 0), query.time_to
        if self._time_ordered:
            return LONG.pack(first), LONG.pack(last + 1) if last < MAX_TIMESTAMP else None
        if query.key_from is not None and query.key_from == query.key_to:
            return window_key(query.key_from, first, 0), window_key(query.key_from, last, LAST_NUMBER)
        return query.key_from, None

    def _rows(self, parts: list[Iterator[tuple[bytes, bytes]]], query: WindowQuery) -> Iterator[WindowRow]:
        for part in parts:
            for packed, value in part:
                key, start = self._unpack(packed)
                if query.contains(key, start):
                    yield key, start, value


class WindowLayer(WindowBytes):
    """A layer that passes reads to the store below."""

    def __init__(self, inner: WindowBytes) -> None:
        self.inner = inner

    def init(self, context: StoreContext) -> None:
        """Open the store below."""
        self.inner.init(context)

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Return the value of a window, or None."""
        return self.inner.fetch(key, start)

    def scan(self, query: WindowQuery) -> Iterator[WindowRow]:
        """Return an iterator over the rows of a query."""
        return self.inner.scan(query)

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Apply a record of the changelog to the store below."""
        self.inner.restore(key, value, timestamp, headers)

    def close(self) -> None:
        """Close the store below."""
        self.inner.close()


class LoggedWindowBytes(WindowLayer):
    """Appends each update to the changelog (`ChangeLoggingWindowBytesStore` and its timestamped variant).

    Kafka counts the sequence numbers of the changelog here too, and counts a delete that the store below skips.
    """

    def __init__(self, inner: WindowBytes, maps: StoreMaps, layout: WindowLayout, logs_headers: bool) -> None:
        super().__init__(inner)
        self._name = maps.name
        self._layout = layout
        self._logs_headers = logs_headers
        self._context: StoreContext | None = None
        self._numbers = maps.numbers

    def init(self, context: StoreContext) -> None:
        """Open the store below."""
        self._context = context
        super().init(context)

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Set the value of a window and log it."""
        self.inner.put(key, value, start)
        if self._layout.retains_duplicates:
            self._numbers.logged_sequence = (self._numbers.logged_sequence + 1) & LAST_NUMBER
        entry = window_key(key, start, self._numbers.logged_sequence), value
        log_value(self._context, self._name, entry, self._layout.timestamped, self._logs_headers)

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Apply a record of the changelog. Sequence numbers continue after the largest restored number."""
        number = INT.unpack_from(key, len(key) - 4)[0]
        self._numbers.logged_sequence = max(self._numbers.logged_sequence, number)
        super().restore(key, value, timestamp, headers)


class CachedWindowBytes(WindowLayer):
    """Keeps updates in the cache of the task until a flush (`CachingWindowStore`).

    A key of the cache is the number of the segment (8 bytes) and the window key, so that the order of the cache is the
    order of the store. Cached windows do not expire before they are flushed.
    """

    def __init__(self, inner: WindowBytes, segment_interval_ms: int) -> None:
        super().__init__(inner)
        self._interval_ms = segment_interval_ms
        self._layer = CachingLayer(self._read, self._write)

    def init(self, context: StoreContext) -> None:
        """Open the cache and the store below."""
        self._layer.init(context)
        super().init(context)

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Set the value of a window in the cache. None is a tombstone."""
        self._layer.put(self._cache_key(key, start), value)

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Return the value of a window, or None."""
        entry = self._layer.get(self._cache_key(key, start))
        return entry.value if entry is not None else self.inner.fetch(key, start)

    def scan(self, query: WindowQuery) -> Iterator[WindowRow]:
        """Return an iterator over the rows of the cache and the store below."""
        if self._layer.cache is None or query.is_empty:
            return self.inner.scan(query)
        first, last = max(query.time_from, 0), max(query.time_to, 0)
        bounds: tuple[bytes | None, bytes | None] = query.key_from, None
        if query.key_from is not None and query.key_from == query.key_to:
            bounds = window_key(query.key_from, first, 0), window_key(query.key_from, last, LAST_NUMBER)
        numbers = first // self._interval_ms, last // self._interval_ms
        if query.key_from is None and query.key_to is None:
            # Kafka reads the whole cache here. The reads count as use of the entries, which decides later evictions.
            cached = self._layer.cache.range(None, None, query.forward)
        else:
            cached = self._layer.cache.segmented_range(numbers, bounds, query.forward)
        merged = merge_cached(self._matching(cached, query), self._keyed(self.inner.scan(query)), query.forward)
        return ((*self._window(key), value) for key, value in merged)

    def set_flush_listener(self, listener: BytesListener, send_old_values: bool) -> bool:
        """Set the receiver of flushed entries. Returns False if the task has no cache."""

        def flushed(record: Record[bytes, Change[bytes]]) -> None:
            listener(record.with_key(window_key(*self._window(record.key), 0)))

        return self._layer.set_listener(flushed, send_old_values)

    def flush_cache(self) -> None:
        """Flush the cache."""
        self._layer.flush()

    def close(self) -> None:
        """Flush the cache and close the store below."""
        self._layer.close()
        super().close()

    def _cache_key(self, key: bytes, start: int) -> bytes:
        number = start // self._interval_ms if start >= 0 else -(-start // self._interval_ms)
        return LONG.pack(number) + window_key(key, start, 0)

    def _window(self, cache_key: bytes) -> tuple[bytes, int]:
        """Return the key and the start of the window of an entry."""
        return cache_key[8:-12], LONG.unpack_from(cache_key, len(cache_key) - 12)[0]

    def _read(self, cache_key: bytes) -> bytes | None:
        return self.inner.fetch(*self._window(cache_key))

    def _write(self, cache_key: bytes, value: bytes | None) -> None:
        key, start = self._window(cache_key)
        self.inner.put(key, value, start)

    def _matching(
        self, cached: Iterator[tuple[bytes, CacheEntry]], query: WindowQuery
    ) -> Iterator[tuple[bytes, CacheEntry]]:
        for key, entry in cached:
            if query.contains(*self._window(key)):
                yield key, entry

    def _keyed(self, rows: Iterator[WindowRow]) -> Iterator[tuple[bytes, bytes]]:
        for key, start, value in rows:
            yield self._cache_key(key, start), value


class TimeOrderedCachedWindowBytes(CachedWindowBytes):
    """The cache of a store in time order (`TimeOrderedCachingWindowStore`): entries are ordered by start, then by key.

    Kafka also counts an index entry for each window in the size of the cache. This cache does not.
    """

    def scan(self, query: WindowQuery) -> Iterator[WindowRow]:
        """Return an iterator over the rows of the cache and the store below."""
        if self._layer.cache is None or query.is_empty:
            return self.inner.scan(query)
        first = self._cache_key(b"", max(query.time_from, 0))
        cached = self._layer.cache.range(first, None, query.forward)
        merged = merge_cached(self._matching(cached, query), self._keyed(self.inner.scan(query)), query.forward)
        return ((*self._window(key), value) for key, value in merged)

    def _cache_key(self, key: bytes, start: int) -> bytes:
        return super()._cache_key(b"", start)[:16] + key + NO_NUMBER

    def _window(self, cache_key: bytes) -> tuple[bytes, int]:
        return cache_key[16:-4], LONG.unpack_from(cache_key, 8)[0]


NO_NUMBER = INT.pack(0)
"""The sequence number of a window without duplicates."""
