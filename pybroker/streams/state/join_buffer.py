"""The buffer of a stream-table join with a grace period: records of the stream until the grace has passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pybroker.streams.records import Headers, Record, RecordContext, ValueAndTimestamp
from pybroker.streams.serdes import AnySerde, Serde
from pybroker.streams.state.buffers import BufferValue, Eviction, TimeOrderedBuffer, check_put
from pybroker.streams.state.sorted_map import SortedMap
from pybroker.streams.state.store import StoreContext
from pybroker.streams.state.values import INT, LONG, resolve, resolve_if_known
from pybroker.streams.state.window_bytes import LAST_NUMBER
from pybroker.streams.windows import MAX_TIMESTAMP

K = TypeVar("K")
V = TypeVar("V")

TIME_FIRST = b"\x00"
"""The first byte of keys that begin with the time (`PrefixedWindowKeySchemas`)."""


class JoinBuffer(TimeOrderedBuffer[K, V, V]):
    """Buffers all records by timestamp, key and sequence number (`RocksDBTimeOrderedKeyValueBuffer`).

    A key in the store and its changelog is a zero byte, the 8-byte timestamp, the key and the 4-byte sequence number.
    The changelog value is the buffered record and 8 zero bytes. Changes are logged at once.
    """

    def __init__(self, name: str, grace_ms: int, logging: bool, key_serde: AnySerde, value_serde: AnySerde) -> None:
        self.name = name
        self._grace_ms = grace_ms
        self._logging = logging
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._context: StoreContext | None = None
        self._rows: SortedMap[BufferValue] = SortedMap()
        self._stream_time = -1
        self._number = 0
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

    def put(self, time: int, record: Record[K, V], record_context: RecordContext) -> bool:  # noqa: ARG002 - the interface of buffers
        """Add a record. Returns False if it is older than the largest timestamp of the buffer minus the grace."""
        check_put(record, self.name)
        if record.key is None:
            raise ValueError(f"invalid key None for the buffer {self.name!r}: expected a key")
        if self._stream_time - self._grace_ms > record.timestamp:
            return False
        self._number = (self._number + 1) & LAST_NUMBER
        key = self._keys.serialize(record.key)
        row = TIME_FIRST + LONG.pack(record.timestamp) + key + INT.pack(self._number)
        value = BufferValue(None, None, self._values.serialize(record.value), record_context)
        self._add(row, value)
        self._log(row, value.to_bytes() + LONG.pack(0))
        return True

    def evict_while(self, predicate: Callable[[], bool], callback: Callable[[Eviction[K, V]], None]) -> None:
        """Remove records whose grace has passed, by timestamp and key, while the predicate is true."""
        if not predicate():
            return
        last = self._stream_time - self._grace_ms
        upper = TIME_FIRST + LONG.pack(last + 1)
        for row, value in self._rows.range(None, upper, True, False) if last >= 0 else ():
            if not predicate():
                break
            key = self._keys.deserialize(row[9:-4])
            callback(Eviction(key, self._values.deserialize(value.new or b""), value.context))
            self._drop(row)
            self._log(row, None)
        self._least = MAX_TIMESTAMP if len(self._rows) == 0 else last + 1

    def prior_value_for_buffered(self, key: K) -> tuple[bool, ValueAndTimestamp[V] | None]:  # noqa: ARG002 - the interface of buffers
        """Return (False, None): the buffer does not know earlier values."""
        return False, None

    @property
    def num_records(self) -> int:
        """The number of records."""
        return len(self._rows)

    @property
    def buffer_size(self) -> int:
        """The memory of all records, in bytes, as Kafka estimates it."""
        return self._size

    @property
    def min_timestamp(self) -> int:
        """A lower bound of the timestamps of all records, in milliseconds; `MAX_TIMESTAMP` for an empty buffer."""
        return self._least

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the fields that the changelog does not have: the stream time, and the last sequence number."""
        return (self, "_stream_time"), (self, "_number")

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:  # noqa: ARG002 - the interface of buffers
        """Apply one record of the changelog. Sequence numbers continue after the largest restored number."""
        self._number = max(self._number, INT.unpack_from(key, len(key) - 4)[0])
        if value is None:
            self._drop(key)
        else:
            self._add(key, BufferValue.from_bytes(value)[0])

    def close(self) -> None:
        """Release the data."""
        self.is_open = False
        self._rows.clear()
        self._size = 0
        self._least = MAX_TIMESTAMP

    @property
    def _keys(self) -> Serde[K]:
        return resolve(self._key_serde, None, "key", self.name)

    @property
    def _values(self) -> Serde[V]:
        return resolve(self._value_serde, None, "value", self.name)

    def _add(self, row: bytes, value: BufferValue) -> None:
        time: int = LONG.unpack_from(row, 1)[0]
        self._drop(row)
        self._rows.put(row, value)
        self._size += len(row) + value.size
        self._stream_time = max(self._stream_time, time)
        self._least = min(self._least, time)

    def _drop(self, row: bytes) -> None:
        value = self._rows.remove(row)
        if value is not None:
            self._size -= len(row) + value.size

    def _log(self, row: bytes, value: bytes | None) -> None:
        if self._logging and self._context is not None:
            self._context.log_change(self.name, row, value, None, ())
