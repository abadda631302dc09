"""The store of a left or outer join of two streams: records that have no match yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from pybroker.streams.errors import InvalidStateStoreError
from pybroker.streams.records import Headers
from pybroker.streams.serdes import AnySerde, Serde
from pybroker.streams.state.cache import FlushListener
from pybroker.streams.state.key_value_bytes import KeyValueBytes
from pybroker.streams.state.store import StateStore, StoreContext
from pybroker.streams.state.values import INT, LONG, resolve

K = TypeVar("K")
L = TypeVar("L")
R = TypeVar("R")

VARIABLE_SIZE = 1
"""The first byte of a list whose elements have a length each (`ListSerializer`)."""


class TimestampedKeyAndJoinSide(msgspec.Struct, Generic[K], frozen=True):
    """A key, the timestamp of a record in milliseconds, and the side of the join that the record came from."""

    key: K
    timestamp: int
    is_left: bool


class LeftOrRight(msgspec.Struct, Generic[L, R], frozen=True):
    """A value of the left or of the right side of a join (`LeftOrRightValue`)."""

    value: Any
    is_left: bool

    @property
    def left(self) -> L | None:
        """The value of the left side, or None."""
        return self.value if self.is_left else None

    @property
    def right(self) -> R | None:
        """The value of the right side, or None."""
        return None if self.is_left else self.value


def join_side_serde(key: Serde[K]) -> Serde[TimestampedKeyAndJoinSide[K]]:
    """Return the serde of keys: 8-byte timestamp, one byte (1 for left), the key."""

    def serialize(value: TimestampedKeyAndJoinSide[K]) -> bytes:
        return LONG.pack(value.timestamp) + bytes([value.is_left]) + key.serialize(value.key)

    def deserialize(data: bytes) -> TimestampedKeyAndJoinSide[K]:
        return TimestampedKeyAndJoinSide(key.deserialize(data[9:]), LONG.unpack_from(data)[0], data[8] == 1)

    return Serde(f"timestamp and join side of {key.name}", serialize, deserialize)


def left_or_right_serde(left: Serde[L], right: Serde[R]) -> Serde[LeftOrRight[L, R]]:
    """Return the serde of values: one byte (1 for left), the value."""

    def serialize(value: LeftOrRight[L, R]) -> bytes:
        serde: Serde[Any] = left if value.is_left else right
        return bytes([value.is_left]) + serde.serialize(value.value)

    def deserialize(data: bytes) -> LeftOrRight[L, R]:
        is_left = data[0] == 1
        serde: Serde[Any] = left if is_left else right
        return LeftOrRight(serde.deserialize(data[1:]), is_left)

    return Serde(f"left {left.name} or right {right.name}", serialize, deserialize)


def append_to_list(data: bytes | None, element: bytes) -> bytes:
    """Return the bytes of a list with one more element: one byte, 4-byte count, then 4-byte length and element."""
    count, elements = (0, b"") if data is None else (INT.unpack_from(data, 1)[0], data[5:])
    return bytes([VARIABLE_SIZE]) + INT.pack(count + 1) + elements + INT.pack(len(element)) + element


def list_elements(data: bytes) -> Iterator[bytes]:
    """Return an iterator over the elements of the bytes of a list."""
    at = 5
    while at < len(data):
        length = INT.unpack_from(data, at)[0]
        yield data[at + 4 : at + 4 + length]
        at += 4 + length


class OuterJoinStore(StateStore, Generic[K, L, R]):
    """A list of values for each timestamp, side and key, ordered by timestamp first (`ListValueStore`).

    Each changelog record has the whole list of its key, and the timestamp of the current record.
    """

    def __init__(
        self,
        name: str,
        inner: KeyValueBytes,
        key_serde: AnySerde,
        value_serdes: tuple[AnySerde, AnySerde],
    ) -> None:
        self.name = name
        self._inner = inner
        self._key_serde = key_serde
        self._value_serdes = value_serdes
        self._keys: Serde[TimestampedKeyAndJoinSide[K]]
        self._values: Serde[LeftOrRight[L, R]]

    def init(self, context: StoreContext) -> None:
        """Open the store.

        Raises:
            ProcessorStateError: a serde is missing, and the topology has no default.
        """
        self._keys = join_side_serde(resolve(self._key_serde, context.default_key_serde, "key", self.name))
        left, right = (resolve(serde, context.default_value_serde, "value", self.name) for serde in self._value_serdes)
        self._values = left_or_right_serde(left, right)
        self._inner.init(context)
        self.is_open = True

    def put(self, key: TimestampedKeyAndJoinSide[K], value: LeftOrRight[L, R] | None) -> None:
        """Append a value to the list of a key, or delete the list if the value is None."""
        data = self._key(key)
        if value is None:
            self._inner.put(data, None)
        else:
            self._inner.put(data, append_to_list(self._inner.get(data), self._values.serialize(value)))

    def put_if_absent(self, key: TimestampedKeyAndJoinSide[K], value: LeftOrRight[L, R] | None) -> None:
        """Do the same as `put` if the key has a list, and nothing otherwise.

        The name and the inverted condition are Kafka's. A join deletes a list through it without useless tombstones.
        """
        if self._inner.get(self._key(key)) is not None:
            self.put(key, value)

    def all(self) -> Iterator[tuple[TimestampedKeyAndJoinSide[K], LeftOrRight[L, R]]]:
        """Return an iterator over all values with their keys, by timestamp, right side before left side, and key."""
        self._check()
        rows = self._inner.range(None, None)
        return (
            (self._keys.deserialize(key), self._values.deserialize(element))
            for key, data in rows
            for element in list_elements(data)
        )

    @property
    def approximate_num_entries(self) -> int:
        """The number of lists."""
        return self._inner.approximate_num_entries

    def set_flush_listener(self, listener: FlushListener, send_old_values: bool) -> bool:  # noqa: ARG002 - the store has no cache
        """Return False: the store has no cache."""
        return False

    def close(self) -> None:
        """Release the data."""
        if self.is_open:
            self._inner.close()
            self.is_open = False

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:
        """Apply one record of the changelog: the whole list of a key."""
        self._inner.restore(key, value, timestamp, headers)

    def _key(self, key: TimestampedKeyAndJoinSide[K]) -> bytes:
        self._check()
        return self._keys.serialize(key)

    def _check(self) -> None:
        if not self.is_open:
            raise InvalidStateStoreError(f"store {self.name!r} is closed")
