"""Session stores of bytes: the data, and the layers that log changes and cache entries.

Iteration, expiry and retention follow Kafka's RocksDB stores (`RocksDBSessionStore`, `RocksDBTimeOrderedSessionStore`).
"""

from __future__ import annotations

import abc
import struct
from collections.abc import Iterator

import msgspec

from pybroker.streams.records import Headers
from pybroker.streams.state.cache import BytesListener, CacheEntry, merge_cached
from pybroker.streams.state.caching import CachingLayer, current_context
from pybroker.streams.state.segments import Segments
from pybroker.streams.state.store import StoreContext
from pybroker.streams.state.store_maps import ENTRIES, SECOND_INDEX, StoreMaps
from pybroker.streams.state.values import LONG
from pybroker.streams.windows import MAX_TIMESTAMP

END_AND_START = struct.Struct(">qq")

SessionRow = tuple[bytes, bytes]
"""The key of a session, packed by `session_key`, and its value."""


class SessionQuery(msgspec.Struct, frozen=True):
    """Sessions to read, all bounds included. None is an open bound of keys; times are milliseconds."""

    key_from: bytes | None
    key_to: bytes | None
    earliest_end: int
    latest_start: int
    forward: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether the bounds exclude every key."""
        return self.key_from is not None and self.key_to is not None and self.key_from > self.key_to

    def contains(self, session: bytes) -> bool:
        """Return whether a packed session is inside the bounds."""
        key, start, end = unpack_session(session)
        return (
            end >= self.earliest_end
            and start <= self.latest_start
            and (self.key_from is None or key >= self.key_from)
            and (self.key_to is None or key <= self.key_to)
        )


def session_key(key: bytes, start: int, end: int) -> bytes:
    """Return the key of a session in the store and its changelog: key, 8-byte end, 8-byte start."""
    return key + END_AND_START.pack(end, start)


def unpack_session(session: bytes) -> tuple[bytes, int, int]:
    """Return key, start and end of a packed session."""
    end, start = END_AND_START.unpack_from(session, len(session) - 16)
    return session[:-16], start, end


def session_end(session: bytes) -> int:
    """Return the end of a packed session."""
    end: int = LONG.unpack_from(session, len(session) - 16)[0]
    return end


class SessionBytes(abc.ABC):
    """A store of bytes by session. Sessions are packed keys of `session_key`."""

    def init(self, context: StoreContext) -> None:  # noqa: B027 - a store in memory needs no context
        """Open the store."""

    @abc.abstractmethod
    def put(self, session: bytes, value: bytes | None) -> None:
        """Set the value of a session, or delete it if the value is None."""

    @abc.abstractmethod
    def fetch(self, session: bytes) -> bytes | None:
        """Return the value of a session, or None."""

    @abc.abstractmethod
    def scan(self, query: SessionQuery) -> Iterator[SessionRow]:
        """Return an iterator over the sessions of a query."""

    @abc.abstractmethod
    def scan_ends(self, earliest_end: int, latest_end: int) -> Iterator[SessionRow]:
        """Return an iterator over all sessions that end in a range of time, by end, start and key.

        Raises:
            NotImplementedError: the store is not in time order.
        """

    @abc.abstractmethod
    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Apply a record of the changelog."""

    def set_flush_listener(self, listener: BytesListener, send_old_values: bool) -> bool:  # noqa: ARG002 - the layer has no cache or no headers
        """Set the receiver of flushed entries; keys are packed sessions. Returns False if the store has no cache."""
        return False

    def flush_cache(self) -> None:  # noqa: B027 - only the caching layer has a cache
        """Flush the cache."""

    @abc.abstractmethod
    def close(self) -> None:
        """Flush the cache and release the data."""


class StoredSessionBytes(SessionBytes):
    """The data of a session store, in segments.

    A session is readable while its end is later than the largest end minus the retention (strict retention). Only
    `scan_ends` reads older sessions of live segments. The store keeps an index by time if it is in time order.
    """

    def __init__(
        self, maps: StoreMaps, retention_ms: int, segment_interval_ms: int, time_ordered: bool = False
    ) -> None:
        self._maps = maps
        self._retention_ms = retention_ms
        self._segments = Segments(maps, ENTRIES, retention_ms, segment_interval_ms)
        self._by_time = Segments(maps, SECOND_INDEX, retention_ms, segment_interval_ms) if time_ordered else None
        self._numbers = maps.numbers

    def init(self, context: StoreContext) -> None:
        """Open the data."""
        self._maps.open(context.state_directory)
        self._segments.open()
        if self._by_time is not None:
            self._by_time.open()

    def put(self, session: bytes, value: bytes | None) -> None:
        """Set the value of a session, or delete it if the value is None."""
        end = session_end(session)
        self._numbers.stream_time = stream_time = max(self._numbers.stream_time, end)
        for segments, key in self._places(session):
            segment = segments.create_if_live(segments.number(end), stream_time)
            if segment is None:
                return
            if value is None:
                segment.remove(key)
            else:
                segment.put(key, value)

    def fetch(self, session: bytes) -> bytes | None:
        """Return the value of a session, or None."""
        end = session_end(session)
        segment = self._segments.find(end)
        return segment.get(session) if segment is not None and end >= self._oldest() else None

    def scan(self, query: SessionQuery) -> Iterator[SessionRow]:
        """Return an iterator over the sessions of a query: by segment, then by key, end and start."""
        if query.is_empty:
            return iter(())
        first = max(query.earliest_end, self._oldest())
        lower, upper = query.key_from, None
        if query.key_from is not None and query.key_from == query.key_to:
            lower = session_key(query.key_from, 0, max(first, 0))
            upper = session_key(query.key_from, query.latest_start, MAX_TIMESTAMP)
        query = msgspec.structs.replace(query, earliest_end=first)
        parts = [
            segment.range(lower, upper, query.forward)
            for _, segment in self._segments.between(first, MAX_TIMESTAMP, query.forward)
        ]
        return ((session, value) for part in parts for session, value in part if query.contains(session))

    def scan_ends(self, earliest_end: int, latest_end: int) -> Iterator[SessionRow]:
        """Return an iterator over all sessions that end in a range of time, by end, start and key.

        Raises:
            NotImplementedError: the store is not in time order.
        """
        if self._by_time is None:
            raise NotImplementedError("sessions cannot be read by end: the builder has no time order")
        lower = LONG.pack(max(earliest_end, 0))
        upper = LONG.pack(latest_end + 1) if latest_end < MAX_TIMESTAMP else None
        parts = [
            segment.range(lower, upper, True, False)
            for _, segment in self._by_time.between(max(earliest_end, 0), latest_end)
        ]
        return ((key[16:] + key[:16], value) for part in parts for key, value in part)

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:  # noqa: ARG002 - the layer has no cache or no headers
        """Apply a record of the changelog."""
        self.put(key, value)

    def close(self) -> None:
        """Release the data."""
        self._segments.close()
        if self._by_time is not None:
            self._by_time.close()
        self._maps.close()

    def _oldest(self) -> int:
        return self._numbers.stream_time - self._retention_ms + 1

    def _places(self, session: bytes) -> list[tuple[Segments, bytes]]:
        places = [(self._segments, session)]
        if self._by_time is not None:
            places.append((self._by_time, session[-16:] + session[:-16]))
        return places


class SessionLayer(SessionBytes):
    """A layer that passes reads to the store below."""

    def __init__(self, inner: SessionBytes) -> None:
        self.inner = inner

    def init(self, context: StoreContext) -> None:
        """Open the store below."""
        self.inner.init(context)

    def fetch(self, session: bytes) -> bytes | None:
        """Return the value of a session, or None."""
        return self.inner.fetch(session)

    def scan(self, query: SessionQuery) -> Iterator[SessionRow]:
        """Return an iterator over the sessions of a query."""
        return self.inner.scan(query)

    def scan_ends(self, earliest_end: int, latest_end: int) -> Iterator[SessionRow]:
        """Return an iterator over all sessions that end in a range of time."""
        return self.inner.scan_ends(earliest_end, latest_end)

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Apply a record of the changelog to the store below."""
        self.inner.restore(key, value, timestamp, headers)

    def close(self) -> None:
        """Close the store below."""
        self.inner.close()


class LoggedSessionBytes(SessionLayer):
    """Appends each update to the changelog (`ChangeLoggingSessionBytesStore`)."""

    def __init__(self, inner: SessionBytes, name: str) -> None:
        super().__init__(inner)
        self._name = name
        self._context: StoreContext | None = None

    def init(self, context: StoreContext) -> None:
        """Open the store below."""
        self._context = context
        super().init(context)

    def put(self, session: bytes, value: bytes | None) -> None:
        """Set the value of a session and log it, with the timestamp of the current record."""
        self.inner.put(session, value)
        assert self._context is not None
        self._context.log_change(self._name, session, value, current_context(self._context).timestamp, ())


class CachedSessionBytes(SessionLayer):
    """Keeps updates in the cache of the task until a flush (`CachingSessionStore`).

    A key of the cache is the number of the segment (8 bytes) and the packed session. Cached sessions do not expire
    before they are flushed.
    """

    def __init__(self, inner: SessionBytes, segment_interval_ms: int) -> None:
        super().__init__(inner)
        self._interval_ms = segment_interval_ms
        self._layer = CachingLayer(lambda key: inner.fetch(key[8:]), lambda key, value: inner.put(key[8:], value))

    def init(self, context: StoreContext) -> None:
        """Open the cache and the store below."""
        self._layer.init(context)
        super().init(context)

    def put(self, session: bytes, value: bytes | None) -> None:
        """Set the value of a session in the cache. None is a tombstone."""
        self._layer.put(self._cache_key(session), value)

    def fetch(self, session: bytes) -> bytes | None:
        """Return the value of a session, or None."""
        entry = self._layer.get(self._cache_key(session))
        return entry.value if entry is not None else self.inner.fetch(session)

    def scan(self, query: SessionQuery) -> Iterator[SessionRow]:
        """Return an iterator over the sessions of the cache and the store below."""
        if self._layer.cache is None or query.is_empty:
            return self.inner.scan(query)
        first = max(query.earliest_end, 0)
        bounds: tuple[bytes | None, bytes | None] = query.key_from, None
        if query.key_from is not None and query.key_from == query.key_to:
            bounds = (
                session_key(query.key_from, 0, first),
                session_key(query.key_from, query.latest_start, MAX_TIMESTAMP),
            )
        numbers = first // self._interval_ms, MAX_TIMESTAMP // self._interval_ms
        cached = self._layer.cache.segmented_range(numbers, bounds, query.forward)
        merged = merge_cached(self._matching(cached, query), self._keyed(self.inner.scan(query)), query.forward)
        return ((key[8:], value) for key, value in merged)

    def set_flush_listener(self, listener: BytesListener, send_old_values: bool) -> bool:
        """Set the receiver of flushed entries. Returns False if the task has no cache."""
        return self._layer.set_listener(lambda record: listener(record.with_key(record.key[8:])), send_old_values)

    def flush_cache(self) -> None:
        """Flush the cache."""
        self._layer.flush()

    def close(self) -> None:
        """Flush the cache and close the store below."""
        self._layer.close()
        super().close()

    def _cache_key(self, session: bytes) -> bytes:
        return LONG.pack(session_end(session) // self._interval_ms) + session

    def _matching(
        self, cached: Iterator[tuple[bytes, CacheEntry]], query: SessionQuery
    ) -> Iterator[tuple[bytes, CacheEntry]]:
        return ((key, entry) for key, entry in cached if query.contains(key[8:]))

    def _keyed(self, rows: Iterator[SessionRow]) -> Iterator[tuple[bytes, bytes]]:
        return ((self._cache_key(session), value) for session, value in rows)
