"""The buffer of `suppress`: the latest change of each key, in the order of the time of its first change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pybroker.client.java.hash_order import HashOrderedSet, bytes_hash
from pybroker.streams.errors import ProcessorStateError
from pybroker.streams.records import NO_TIMESTAMP, Change, Headers, Record, RecordContext, ValueAndTimestamp
from pybroker.streams.serdes import AnySerde, Serde
from pybroker.streams.state.buffers import BufferValue, Eviction, TimeOrderedBuffer, check_put
from pybroker.streams.state.sorted_map import SortedMap
from pybroker.streams.state.store import StoreContext
from pybroker.streams.state.values import LONG, resolve, resolve_if_known
from pybroker.streams.windows import MAX_TIMESTAMP

K = TypeVar("K")
V = TypeVar("V")

CHANGELOG_HEADERS: Headers = (("v", b"\x03"),)
"""The headers of a changelog record: the version of its format."""


class SuppressBuffer(TimeOrderedBuffer[K, V, Change[V]]):
    """Buffers one change per key (`InMemoryTimeOrderedKeyValueChangeBuffer`).

    A new change of a buffered key replaces the change and keeps its place. The changelog gets the changed keys when the
    task commits. Its value is the buffered record and the 8-byte buffer time (format version 3).
    """

    def __init__(self, name: str, logging: bool, key_serde: AnySerde, value_serde: AnySerde) -> None:
        self.name = name
        self._logging = logging
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._context: StoreContext | None = None
        self._times: dict[bytes, int] = {}
        self._sorted: SortedMap[BufferValue] = SortedMap()
        # The changelog gets the changed keys in the order of Kafka's HashSet.
        self._changed: HashOrderedSet[bytes] = HashOrderedSet(bytes_hash)
        self._size = 0
        self._least = MAX_TIMESTAMP

    def init(self, context: StoreContext) -> None:
        """Open the buffer, and take default serdes from the context."""
        self._context = context
        self.set_serdes_if_none(context.default_key_serde, context.default_value_serde)
        self.is_open = True

    def set_serdes_if_none(self, key_serde: Serde[K] | None, value_serde: Serde[V] | None) -> None:
        """Set the serdes that the builder did not have."""
        self._key_serde = resolve_if_known(self._key_serde, key_serde)
        self._value_serde = resolve_if_known(self._value_serde, value_serde)

    def put(self, time: int, record: Record[K, Change[V]], record_context: RecordContext) -> bool:
        """Buffer a change. Returns True always."""
        check_put(record, self.name)
        key = self._keys.serialize(record.key)
        old = self._values.to_bytes(record.value.old_value)
        new = self._values.to_bytes(record.value.new_value)
        buffered = self._buffered(key)
        prior = old if buffered is None else buffered.prior
        self._store(time, key, BufferValue(prior, old, new, record_context))
        if self._logging:
            self._changed.add(key)
        return True

    def evict_while(self, predicate: Callable[[], bool], callback: Callable[[Eviction[K, Change[V]]], None]) -> None:
        """Remove changes in the order of time and key while the predicate is true, and pass each to the callback."""
        while predicate() and (place := self._sorted.first()) is not None:
            value = self._sorted.get(place)
            assert value is not None
            key = place[8:]
            change = Change(self._values.from_bytes(value.new), self._values.from_bytes(value.old))
            callback(Eviction(self._keys.deserialize(key), change, value.context))
            self._remove(key)
            if self._logging:
                self._changed.add(key)

    def prior_value_for_buffered(self, key: K) -> tuple[bool, ValueAndTimestamp[V] | None]:
        """Return whether a key is buffered, and the value that downstream has. Its timestamp is unknown: -1."""
        buffered = self._buffered(self._keys.serialize(key))
        if buffered is None:
            return False, None
        value = self._values.from_bytes(buffered.prior)
        return True, None if value is None else ValueAndTimestamp(value, NO_TIMESTAMP)

    @property
    def num_records(self) -> int:
        """The number of buffered keys."""
        return len(self._times)

    @property
    def buffer_size(self) -> int:
        """The memory of all records, in bytes, as Kafka estimates it."""
        return self._size

    @property
    def min_timestamp(self) -> int:
        """The least buffer time, in milliseconds; `MAX_TIMESTAMP` for an empty buffer."""
        return self._least

    def flush(self) -> None:
        """Write the changed keys to the changelog: the buffered record, or a tombstone for an evicted key."""
        context = self._context
        if not self._logging or context is None:
            return
        for key in self._changed:
            buffered = self._buffered(key)
            if buffered is None:
                context.log_change(self.name, key, None, None, ())
            else:
                value = buffered.to_bytes() + LONG.pack(self._times[key])
                context.log_change(self.name, key, value, None, CHANGELOG_HEADERS)
        self._changed.clear()

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:  # noqa: ARG002 - the interface of stores
        """Apply one record of the changelog.

        Raises:
            ProcessorStateError: the record has another format version than 3.
        """
        if value is None:
            self._remove(key)
            return
        version = dict(headers).get("v")
        if version != CHANGELOG_HEADERS[0][1]:
            raise ProcessorStateError(
                f"changelog record of store {self.name!r} has format version {version!r}: expected 3"
            )
        buffered, rest = BufferValue.from_bytes(value)
        self._store(LONG.unpack(rest)[0], key, buffered)

    def close(self) -> None:
        """Release the data. Changes that `flush` has not logged are lost."""
        self.is_open = False
        self._times.clear()
        self._sorted.clear()
        self._changed.clear()
        self._size = 0
        self._least = MAX_TIMESTAMP

    @property
    def _keys(self) -> Serde[K]:
        return resolve(self._key_serde, None, "key", self.name)

    @property
    def _values(self) -> Serde[V]:
        return resolve(self._value_serde, None, "value", self.name)

    def _buffered(self, key: bytes) -> BufferValue | None:
        time = self._times.get(key)
        return None if time is None else self._sorted.get(LONG.pack(time) + key)

    def _store(self, time: int, key: bytes, value: BufferValue) -> None:
        previous = self._buffered(key)
        if previous is not None:
            self._size -= _record_size(key, previous)
        place = LONG.pack(self._times.setdefault(key, time)) + key
        self._sorted.put(place, value)
        self._size += _record_size(key, value)
        if previous is None:
            self._least = min(self._least, time)

    def _remove(self, key: bytes) -> None:
        time = self._times.pop(key, None)
        if time is None:
            return
        value = self._sorted.remove(LONG.pack(time) + key)
        if value is not None:
            self._size -= _record_size(key, value)
        first = self._sorted.first()
        self._least = MAX_TIMESTAMP if first is None else LONG.unpack_from(first)[0]


def _record_size(key: bytes, value: BufferValue) -> int:
    """Return the memory of a record: 8 bytes for the time, the key and the values."""
    return 8 + len(key) + value.size
