"""The typed session store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from pybroker.streams.errors import InvalidStateStoreError
from pybroker.streams.records import Change, Headers, Record
from pybroker.streams.serdes import AnySerde, Serde
from pybroker.streams.state.cache import FlushListener
from pybroker.streams.state.session_bytes import SessionBytes, SessionQuery, SessionRow, session_key, unpack_session
from pybroker.streams.state.store import StateStore, StoreContext
from pybroker.streams.state.values import resolve
from pybroker.streams.windows import MAX_TIMESTAMP, SessionWindow, Windowed

K = TypeVar("K")
V = TypeVar("V")


class SessionStore(StateStore, Generic[K, V]):
    """A store of values by key and session (`org.apache.kafka.streams.state.SessionStore`).

    Times are milliseconds. All bounds are included.
    """

    def __init__(self, name: str, inner: SessionBytes, key_serde: AnySerde, value_serde: AnySerde) -> None:
        self.name = name
        self._inner = inner
        self._given_key_serde = key_serde
        self._given_value_serde = value_serde
        self._keys: Serde[K]
        self._values: Serde[V]

    def init(self, context: StoreContext) -> None:
        """Open the store.

        Raises:
            ProcessorStateError: a serde is missing, and the topology has no default.
        """
        self._keys = resolve(self._given_key_serde, context.default_key_serde, "key", self.name)
        self._values = resolve(self._given_value_serde, context.default_value_serde, "value", self.name)
        self._inner.init(context)
        self.is_open = True

    def put(self, windowed: Windowed[K], value: V | None) -> None:
        """Set the value of a session, or delete it if the value is None."""
        self._inner.put(self._session(windowed), self._values.to_bytes(value))

    def remove(self, windowed: Windowed[K]) -> None:
        """Delete a session."""
        self._inner.put(self._session(windowed), None)

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """Return the value of the session with exactly this start and end, or None."""
        return self._values.from_bytes(self._inner.fetch(session_key(self._key(key), start, end)))

    def fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all sessions of a key, by end."""
        return self.find_sessions(key, 0, MAX_TIMESTAMP)

    def backward_fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all sessions of a key, latest first."""
        return self.backward_find_sessions(key, 0, MAX_TIMESTAMP)

    def fetch_keys(self, key_from: K | None, key_to: K | None) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all sessions of several keys. None is an open bound."""
        return self.find_sessions_between(key_from, key_to, 0, MAX_TIMESTAMP)

    def backward_fetch_keys(self, key_from: K | None, key_to: K | None) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all sessions of several keys, in the reverse order."""
        return self.backward_find_sessions_between(key_from, key_to, 0, MAX_TIMESTAMP)

    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over the sessions of a key that end and start inside the bounds, by end."""
        data = self._key(key)
        return self._typed(self._inner.scan(SessionQuery(data, data, earliest_end, latest_start)))

    def backward_find_sessions(self, key: K, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over the sessions of a key, latest first."""
        data = self._key(key)
        return self._typed(self._inner.scan(SessionQuery(data, data, earliest_end, latest_start, False)))

    def find_sessions_between(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over the sessions of several keys. None is an open bound."""
        return self._between(key_from, key_to, (earliest_end, latest_start), True)

    def backward_find_sessions_between(
        self, key_from: K | None, key_to: K | None, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over the sessions of several keys, in the reverse order."""
        return self._between(key_from, key_to, (earliest_end, latest_start), False)

    def find_all_sessions(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all sessions that end in a range of time, by end, start and key.

        Raises:
            NotImplementedError: the builder of the store has no time order.
        """
        self._check()
        return self._typed(self._inner.scan_ends(earliest_end, latest_end))

    def set_flush_listener(self, listener: FlushListener, send_old_values: bool) -> bool:
        """Set the receiver of the updates that the cache flushes. The keys of its records are Windowed.

        Returns:
            False if the store has no cache. The listener is never called then.
        """

        def typed(record: Record[bytes, Change[bytes]]) -> None:
            new = self._values.from_bytes(record.value.new_value)
            old = self._values.from_bytes(record.value.old_value)
            change = Change(new, old, record.value.is_latest)
            listener(Record(self._windowed(record.key), change, record.timestamp, record.headers))

        return self._inner.set_flush_listener(typed, send_old_values)

    def flush_cache(self) -> None:
        """Write the entries of the cache to the store, and call the flush listener for each."""
        self._inner.flush_cache()

    def close(self) -> None:
        """Flush the cache and release the data."""
        if self.is_open:
            self._inner.close()
            self.is_open = False

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:
        """Apply one record of the changelog."""
        self._inner.restore(key, value, timestamp, headers)

    def _key(self, key: K) -> bytes:
        self._check()
        if key is None:
            raise ValueError(f"invalid key None for store {self.name!r}: expected a key")
        data = self._keys.to_bytes(key)
        assert data is not None
        return data

    def _session(self, windowed: Windowed[K]) -> bytes:
        return session_key(self._key(windowed.key), windowed.window.start, windowed.window.end)

    def _windowed(self, session: bytes) -> Windowed[K]:
        key, start, end = unpack_session(session)
        return Windowed(self._keys.from_bytes(key), SessionWindow(start, end))  # type: ignore[arg-type]

    def _between(
        self, key_from: K | None, key_to: K | None, times: tuple[int, int], forward: bool
    ) -> Iterator[tuple[Windowed[K], V]]:
        self._check()
        lower, upper = self._keys.to_bytes(key_from), self._keys.to_bytes(key_to)
        return self._typed(self._inner.scan(SessionQuery(lower, upper, times[0], times[1], forward)))

    def _typed(self, rows: Iterator[SessionRow]) -> Iterator[tuple[Windowed[K], V]]:
        read: Any = self._values.from_bytes
        return ((self._windowed(session), read(value)) for session, value in rows)

    def _check(self) -> None:
        if not self.is_open:
            raise InvalidStateStoreError(f"store {self.name!r} is closed")
