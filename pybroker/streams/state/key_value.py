"""Typed key-value stores, with and without timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from pybroker.streams.errors import InvalidStateStoreError
from pybroker.streams.records import Change, Headers, Record, ValueAndTimestamp
from pybroker.streams.serdes import AnySerde, Serde
from pybroker.streams.state.cache import FlushListener
from pybroker.streams.state.key_value_bytes import KeyValueBytes
from pybroker.streams.state.ordered_map import increment
from pybroker.streams.state.store import StateStore, StoreContext
from pybroker.streams.state.values import resolve, timestamped

K = TypeVar("K")
V = TypeVar("V")


class KeyValueStore(StateStore, Generic[K, V]):
    """A store of one value per key, ordered by the bytes of the keys (`org.apache.kafka.streams.state.KeyValueStore`).

    Iterators have the keys of the time of the call. The store can change during the iteration.
    """

    def __init__(self, name: str, inner: KeyValueBytes, key_serde: AnySerde, value_serde: AnySerde) -> None:
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
        self._values = self._stored(resolve(self._given_value_serde, context.default_value_serde, "value", self.name))
        self._inner.init(context)
        self.is_open = True

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._values.from_bytes(self._inner.get(self._key(key)))

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key, or delete the key if the value is None."""
        self._inner.put(self._key(key), self._value_bytes(value))

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set the value of a key that has none. Returns the value before, or None if it was absent."""
        data = self._key(key)
        previous = self._inner.get(data)
        if previous is None:
            self._inner.put(data, self._value_bytes(value))
        return self._values.from_bytes(previous)

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Set the values of several keys, in order."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        """Delete a key and return its value, or None."""
        data = self._key(key)
        previous = self._inner.get(data)
        self._inner.put(data, None)
        return self._values.from_bytes(previous)

    def range(self, start: K | None, end: K | None) -> Iterator[tuple[K, V]]:
        """Return an iterator over the keys from `start` to `end`, both included, in ascending order of bytes.

        None is an open bound.
        """
        return self._typed(self._range(start, end, True))

    def reverse_range(self, start: K | None, end: K | None) -> Iterator[tuple[K, V]]:
        """Return an iterator over the keys from `end` down to `start`, both included."""
        return self._typed(self._range(start, end, False))

    def all(self) -> Iterator[tuple[K, V]]:
        """Return an iterator over all keys, in ascending order of bytes."""
        return self.range(None, None)

    def reverse_all(self) -> Iterator[tuple[K, V]]:
        """Return an iterator over all keys, in descending order of bytes."""
        return self.reverse_range(None, None)

    def prefix_scan(self, prefix: Any, serde: Serde[Any]) -> Iterator[tuple[K, V]]:
        """Return an iterator over the keys whose bytes begin with the bytes of `prefix`, serialized by `serde`."""
        self._check()
        lower = serde.serialize(prefix)
        return self._typed(self._inner.range(lower, increment(lower), True, False))

    @property
    def approximate_num_entries(self) -> int:
        """The number of entries, without those that only the cache contains. RocksDB estimates it."""
        self._check()
        return self._inner.approximate_num_entries

    def set_flush_listener(self, listener: FlushListener, send_old_values: bool) -> bool:
        """Set the receiver of the updates that the cache flushes.

        Returns:
            False if the store has no cache. The listener is never called then.
        """

        def typed(record: Record[bytes, Change[bytes]]) -> None:
            new = self._values.from_bytes(record.value.new_value)
            old = self._values.from_bytes(record.value.old_value)
            key = self._keys.from_bytes(record.key)
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

    def _range(self, start: K | None, end: K | None, forward: bool) -> Iterator[tuple[bytes, bytes]]:
        self._check()
        lower, upper = self._keys.to_bytes(start), self._keys.to_bytes(end)
        if lower is not None and upper is not None and lower > upper:
            return iter(())
        return self._inner.range(lower, upper, forward)

    def _typed(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[K, V]]:
        read_key, read_value = self._keys.from_bytes, self._values.from_bytes
        for key, value in entries:
            yield read_key(key), read_value(value)  # type: ignore[misc] # neither is None

    def _check(self) -> None:
        if not self.is_open:
            raise InvalidStateStoreError(f"store {self.name!r} is closed")


class TimestampedKeyValueStore(KeyValueStore[K, ValueAndTimestamp[V]]):
    """A key-value store whose values have timestamps (`TimestampedKeyValueStore`)."""

    def _stored(self, serde: Serde[Any]) -> Serde[Any]:
        return timestamped(serde)

    def _value_bytes(self, value: ValueAndTimestamp[V] | None) -> bytes | None:
        return None if value is None or value.value is None else self._values.to_bytes(value)
