"""Typed window stores, with and without timestamps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from pybroker.streams.errors import InvalidStateStoreError
from pybroker.streams.records import Change, Headers, Record, ValueAndTimestamp
from pybroker.streams.serdes import AnySerde, Serde
from pybroker.streams.state.cache import FlushListener
from pybroker.streams.state.store import StateStore, StoreContext
from pybroker.streams.state.values import LONG, resolve, timestamped
from pybroker.streams.state.window_bytes import WindowBytes, WindowQuery
from pybroker.streams.windows import MAX_TIMESTAMP, TimeWindow, Windowed

K = TypeVar("K")
V = TypeVar("V")


class WindowStore(StateStore, Generic[K, V]):
    """A store of values by key and start of a window (`org.apache.kafka.streams.state.WindowStore`).

    Times are milliseconds. All bounds are included. A window of a fetched row ends `window_size_ms` after its start.
    """

    def __init__(
        self,
        name: str,
        inner: WindowBytes,
        window_size_ms: int,
        key_serde: AnySerde,
        value_serde: AnySerde,
    ) -> None:
        self.name = name
        self.window_size_ms = window_size_ms
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
        self._values = self._stored(resolve(self._given_value_serde, context.default_value_serde, "value", self.name))
        self._inner.init(context)
        self.is_open = True

    def put(self, key: K, value: V | None, window_start: int) -> None:
        """Set the value of a window, or delete it if the value is None.

        A store that retains duplicates adds the value to the window, and ignores None.
        """
        self._inner.put(self._key(key), self._value_bytes(value), window_start)

    def fetch(self, key: K, at: int) -> V | None:
        """Return the value of the window that starts at `at`, or None."""
        return self._values.from_bytes(self._inner.fetch(self._key(key), at))

    def fetch_range(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, V]]:
        """Return an iterator over (start, value) of the windows of a key, by start."""
        return self._of_key(key, from_ms, to_ms, True)

    def backward_fetch_range(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, V]]:
        """Return an iterator over (start, value) of the windows of a key, latest first."""
        return self._of_key(key, from_ms, to_ms, False)

    def fetch_keys(
        self, key_from: K | None, key_to: K | None, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over the windows of several keys. None is an open bound."""
        return self._of_keys(key_from, key_to, (from_ms, to_ms), True)

    def backward_fetch_keys(
        self, key_from: K | None, key_to: K | None, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over the windows of several keys, in the reverse order."""
        return self._of_keys(key_from, key_to, (from_ms, to_ms), False)

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all windows that start in a range of time."""
        return self._of_keys(None, None, (from_ms, to_ms), True)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all windows that start in a range of time, in the reverse order."""
        return self._of_keys(None, None, (from_ms, to_ms), False)

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all windows."""
        return self._of_keys(None, None, (0, MAX_TIMESTAMP), True)

    def backward_all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Return an iterator over all windows, in the reverse order."""
        return self._of_keys(None, None, (0, MAX_TIMESTAMP), False)

    def set_flush_listener(self, listener: FlushListener, send_old_values: bool) -> bool:
        """Set the receiver of the updates that the cache flushes. The keys of its records are Windowed.

        Returns:
            False if the store has no cache. The listener is never called then.
        """

        def typed(record: Record[bytes, Change[bytes]]) -> None:
            new = self._values.from_bytes(record.value.new_value)
            old = self._values.from_bytes(record.value.old_value)
            key = self._windowed(record.key[:-12], LONG.unpack_from(record.key, len(record.key) - 12)[0])
            listener(Record(key, Change(new, old, record.value.is_latest), record.timestamp, record.headers))

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

    def _stored(self, serde: Serde[Any]) -> Serde[Any]:
        """Return the serde of stored values."""
        return serde

    def _value_bytes(self, value: V | None) -> bytes | None:
        return self._values.to_bytes(value)

    def _key(self, key: K) -> bytes:
        self._check()
        if key is None:
            raise ValueError(f"invalid key None for store {self.name!r}: expected a key")
        data = self._keys.to_bytes(key)
        assert data is not None
        return data

    def _windowed(self, key: bytes, start: int) -> Windowed[K]:
        end = min(start + self.window_size_ms, MAX_TIMESTAMP)
        return Windowed(self._keys.from_bytes(key), TimeWindow(start, end))  # type: ignore[arg-type]

    def _of_key(self, key: K, from_ms: int, to_ms: int, forward: bool) -> Iterator[tuple[int, V]]:
        data = self._key(key)
        rows = self._inner.scan(WindowQuery(data, data, from_ms, to_ms, forward))
        read = self._values.from_bytes
        return ((start, read(value)) for _, start, value in rows)  # type: ignore[misc] # never None

    def _of_keys(
        self, key_from: K | None, key_to: K | None, times: tuple[int, int], forward: bool
    ) -> Iterator[tuple[Windowed[K], V]]:
        self._check()
        lower, upper = self._keys.to_bytes(key_from), self._keys.to_bytes(key_to)
        rows = self._inner.scan(WindowQuery(lower, upper, times[0], times[1], forward))
        read = self._values.from_bytes
        return ((self._windowed(key, start), read(value)) for key, start, value in rows)  # type: ignore[misc]

    def _check(self) -> None:
        if not self.is_open:
            raise InvalidStateStoreError(f"store {self.name!r} is closed")


class TimestampedWindowStore(WindowStore[K, ValueAndTimestamp[V]]):
    """A window store whose values have timestamps (`TimestampedWindowStore`)."""

    def _stored(self, serde: Serde[Any]) -> Serde[Any]:
        return timestamped(serde)

    def _value_bytes(self, value: ValueAndTimestamp[V] | None) -> bytes | None:
        return None if value is None or value.value is None else self._values.to_bytes(value)
