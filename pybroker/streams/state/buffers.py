"""The interface of buffers that order records by time, and the bytes of buffered records."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from pybroker.streams.records import Headers, Record, RecordContext, ValueAndTimestamp
from pybroker.streams.serdes import Serde
from pybroker.streams.state.cache import context_bytes
from pybroker.streams.state.store import StateStore
from pybroker.streams.state.values import INT, LONG

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

SAME_AS_PRIOR = -2
"""The length of an old value that equals the prior value; its bytes are left out."""


class Eviction(msgspec.Struct, Generic[K, T], frozen=True):
    """A record that leaves a buffer, and the context in which it arrived (`TimeOrderedKeyValueBuffer.Eviction`)."""

    key: K
    value: T
    record_context: RecordContext

    def record(self) -> Record[K, T]:
        """Return the record with the timestamp of its context, without headers."""
        return Record(self.key, self.value, self.record_context.timestamp)


class TimeOrderedBuffer(StateStore, Generic[K, V, T]):
    """A store of records in the order of time, for `suppress` and stream-table joins with grace.

    `V` is the type of values of the table or stream, `T` the type of values of the buffered records.
    """

    @abc.abstractmethod
    def set_serdes_if_none(self, key_serde: Serde[K] | None, value_serde: Serde[V] | None) -> None:
        """Set the serdes that the builder did not have."""

    @abc.abstractmethod
    def put(self, time: int, record: Record[K, T], record_context: RecordContext) -> bool:
        """Add a record at a time, in milliseconds. Returns False if the record is too late for the buffer."""

    @abc.abstractmethod
    def evict_while(self, predicate: Callable[[], bool], callback: Callable[[Eviction[K, T]], None]) -> None:
        """Remove records in the order of time while the predicate is true, and pass each to the callback."""

    @abc.abstractmethod
    def prior_value_for_buffered(self, key: K) -> tuple[bool, ValueAndTimestamp[V] | None]:
        """Return whether the value of a key before its buffered record is known, and that value."""

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the fields that a runner must keep beside the changelog, as `OperatorProcessor.kept_fields` does."""
        return ()

    @property
    @abc.abstractmethod
    def num_records(self) -> int:
        """The number of records."""

    @property
    @abc.abstractmethod
    def buffer_size(self) -> int:
        """The memory of all records, in bytes, as Kafka estimates it."""

    @property
    @abc.abstractmethod
    def min_timestamp(self) -> int:
        """The least time of a record, in milliseconds; `MAX_TIMESTAMP` for an empty buffer."""


class BufferValue(msgspec.Struct, frozen=True):
    """A buffered record: bytes of the values, and the context (`BufferValue`)."""

    prior: bytes | None
    """The value that downstream has."""
    old: bytes | None
    new: bytes | None
    context: RecordContext

    @property
    def size(self) -> int:
        """The memory of the record in bytes, as Kafka estimates it. An old value equal to the prior value is free."""
        old = 0 if self.old == self.prior else len(self.old or b"")
        return len(self.prior or b"") + old + len(self.new or b"") + context_bytes(self.context)

    def to_bytes(self) -> bytes:
        """Return context, prior, old and new value; each value after its 4-byte length, -1 for None."""
        parts = [pack_context(self.context), _sized(self.prior)]
        parts.append(INT.pack(SAME_AS_PRIOR) if self.old is not None and self.old == self.prior else _sized(self.old))
        parts.append(_sized(self.new))
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> tuple[BufferValue, bytes]:
        """Return the record of bytes, and the bytes after the record."""
        reader = _Reader(data)
        context = reader.context()
        prior = reader.sized()
        length = reader.integer()
        old = prior if length == SAME_AS_PRIOR else reader.data(length)
        return cls(prior, old, reader.sized(), context), reader.rest()


def pack_context(context: RecordContext) -> bytes:
    """Return the bytes of a context (`ProcessorRecordContext.serialize`)."""
    parts = [LONG.pack(context.timestamp), LONG.pack(context.offset), _sized((context.topic or "").encode())]
    parts += [INT.pack(context.partition), INT.pack(len(context.headers))]
    for key, value in context.headers:
        parts += [_sized(key.encode()), _sized(value)]
    return b"".join(parts)


def _sized(data: bytes | None) -> bytes:
    return INT.pack(-1) if data is None else INT.pack(len(data)) + data


class _Reader:
    """Reads the bytes of a buffered record from the start."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def integer(self) -> int:
        """Read 4 bytes."""
        value: int = INT.unpack_from(self._data, self._at)[0]
        self._at += 4
        return value

    def long(self) -> int:
        """Read 8 bytes."""
        value: int = LONG.unpack_from(self._data, self._at)[0]
        self._at += 8
        return value

    def data(self, length: int) -> bytes | None:
        """Read bytes of a length; a negative length is None."""
        if length < 0:
            return None
        self._at += length
        return self._data[self._at - length : self._at]

    def sized(self) -> bytes | None:
        """Read a length and its bytes."""
        return self.data(self.integer())

    def context(self) -> RecordContext:
        """Read a context."""
        timestamp, offset = self.long(), self.long()
        topic = (self.sized() or b"").decode()
        partition, count = self.integer(), self.integer()
        headers: Headers = tuple(((self.sized() or b"").decode(), self.sized()) for _ in range(count))
        return RecordContext(timestamp, offset, partition, topic, headers)

    def rest(self) -> bytes:
        """Return the bytes that are not read."""
        return self._data[self._at :]


def check_put(record: Record[Any, Any], store: str) -> None:
    """Check that a record has a value.

    Raises:
        ValueError: the value is None.
    """
    if record.value is None:
        raise ValueError(f"invalid value None for the buffer {store!r}: expected a value")
