"""Serdes: how keys and values become bytes, and back. The bytes equal those of Kafka's serdes of the same types."""

from __future__ import annotations

import struct
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, Generic, TypedDict, TypeVar

import msgspec

from pybroker.config.extras import install_command
from pybroker.streams.errors import SerializationError, StreamsError, TopologyError
from pybroker.streams.records import Change
from pybroker.streams.windows import MAX_TIMESTAMP, SessionWindow, TimeWindow, Windowed

T = TypeVar("T")


class Serde(msgspec.Struct, Generic[T], frozen=True):
    """A pair of functions: value to bytes, and bytes to value. Neither is called with None, which stays None.

    Any exception of the functions becomes a SerializationError that names the serde.
    """

    name: str
    serialize: Callable[[T], bytes]
    deserialize: Callable[[bytes], T]
    partition_key: Callable[[T], bytes] | None = None
    """The bytes that choose the partition of a key in a sink; None if these are all bytes of the key."""
    columns: tuple[tuple[str, type], ...] | None = None
    """The fields of a value and their types, if column expressions can run on batches of values."""

    def to_bytes(self, value: T | None) -> bytes | None:
        """Return the bytes of a value, None for None.

        Raises:
            SerializationError: the value has the wrong type.
        """
        if value is None:
            return None
        try:
            return self.serialize(value)
        except Exception as error:
            raise SerializationError(
                f"serde {self.name!r} cannot serialize {value!r:.200} ({type(value).__name__}): {error}"
            ) from error

    def from_bytes(self, data: bytes | None) -> T | None:
        """Return the value of bytes, None for None.

        Raises:
            SerializationError: the bytes are not of this serde.
        """
        if data is None:
            return None
        try:
            return self.deserialize(data)
        except Exception as error:
            raise SerializationError(f"serde {self.name!r} cannot deserialize {data[:50]!r}: {error}") from error


class DefaultSerdes(msgspec.Struct, frozen=True):
    """The serdes of keys and of values that an application uses where a topology names none."""

    key: Serde[Any] | None
    value: Serde[Any] | None

    def resolve_key(self, serde: AnySerde) -> Serde[Any]:
        """Return the serde of keys that stands for `serde`.

        Raises:
            StreamsError: it is None, and the application has no `default.key.serde`.
        """
        return self._resolve(serde, self.key, "key")

    def resolve_value(self, serde: AnySerde) -> Serde[Any]:
        """Return the serde of values that stands for `serde`.

        Raises:
            StreamsError: it is None, and the application has no `default.value.serde`.
        """
        return self._resolve(serde, self.value, "value")

    def _resolve(self, serde: AnySerde, default: Serde[Any] | None, which: str) -> Serde[Any]:
        if isinstance(serde, DeferredSerde):
            return serde.resolve(self)
        if serde is not None:
            return serde
        if default is None:
            raise StreamsError(
                f"no serde for the {which}s: give {which}_serde to the operation, or set default.{which}.serde"
            )
        return default


class DeferredSerde(msgspec.Struct, frozen=True):
    """A serde around the application's default serdes, which are known when the application starts."""

    resolve: Callable[[DefaultSerdes], Serde[Any]]


AnySerde = Serde[Any] | DeferredSerde | None
"""The serde of a node: None stands for the application's default."""


def _packed(name: str, form: str, accepts: type | tuple[type, ...]) -> Serde[Any]:
    """Return the serde of a number of fixed size, big-endian."""
    packer = struct.Struct(form)

    def serialize(value: Any) -> bytes:
        if isinstance(value, bool) or not isinstance(value, accepts):
            raise TypeError("expected a number of this type")
        return packer.pack(value)

    def deserialize(data: bytes) -> Any:
        if len(data) != packer.size:
            raise ValueError(f"expected {packer.size} bytes, found {len(data)}")
        return packer.unpack(data)[0]

    return Serde(name, serialize, deserialize)


def _string_bytes(value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError("expected a str")
    return value.encode()


def _same_bytes(value: bytes | bytearray | memoryview) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("expected bytes")
    return bytes(value)


STRING: Serde[str] = Serde("string", _string_bytes, lambda data: str(data, "utf-8"))
"""Text as UTF-8 (`Serdes.String()`)."""
BYTES: Serde[bytes] = Serde("bytes", _same_bytes, bytes)
"""Bytes as they are (`Serdes.ByteArray()`)."""
INT32: Serde[int] = _packed("int32", ">i", int)
"""A signed integer of four bytes (`Serdes.Integer()`)."""
INT64: Serde[int] = _packed("int64", ">q", int)
"""A signed integer of eight bytes (`Serdes.Long()`)."""
FLOAT64: Serde[float] = _packed("float64", ">d", (int, float))
"""A floating point number of eight bytes (`Serdes.Double()`)."""


def json(of: Any = Any) -> Serde[Any]:
    """Return a serde of JSON.

    Args:
        of: the type to decode to: a dataclass, a TypedDict, a `msgspec.Struct`, `list[int]`, ... Anything by default.
    """
    return Serde("json", msgspec.json.encode, msgspec.json.Decoder(of).decode)


def json_columns(**columns: type) -> Serde[dict[str, Any]]:
    """Return a serde of JSON objects with the given fields, for example `json_columns(user=str, amount=float)`.

    A value is a dict of these fields in this order. A field that is missing or null is None. Other fields are dropped.
    Types are int (64 bits), float, str and bool; nothing is converted, except an integer in a float field.

    Raises:
        TopologyError: no field is given, or a type is another.
    """
    for name, kind in columns.items():
        if kind not in _COLUMN_TYPES:
            raise TopologyError(f"invalid type {kind!r} of field {name!r}: expected int, float, str or bool")
    if not columns:
        raise TopologyError("json_columns has no fields: expected at least one, such as amount=float")
    row = TypedDict("row", {name: _COLUMN_TYPES[kind] for name, kind in columns.items()}, total=False)  # type: ignore[misc]
    decode, names = msgspec.json.Decoder(row).decode, tuple(columns)

    def deserialize(data: bytes) -> dict[str, Any]:
        found = decode(data)
        return {name: found.get(name) for name in names}

    return Serde("json columns", msgspec.json.encode, deserialize, columns=tuple(columns.items()))


_COLUMN_TYPES: dict[type, Any] = {
    int: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None,
    float: float | None,
    str: str | None,
    bool: bool | None,
}


def msgpack(of: Any = Any) -> Serde[Any]:
    """Return a serde of MessagePack; `of` is the type to decode to."""
    return Serde("msgpack", msgspec.msgpack.encode, msgspec.msgpack.Decoder(of).decode)


def arrow() -> Serde[Any]:
    """Return a serde of Arrow tables, as streams of Arrow's IPC format.

    A value is a `pyarrow.Table`. A `pyarrow.RecordBatch` is accepted too.

    Raises:
        StreamsError: pyarrow is not installed.
    """
    if find_spec("pyarrow") is None:
        raise StreamsError(f"the serde of Arrow tables needs pyarrow: run {install_command('columns')}")
    pyarrow, ipc = import_module("pyarrow"), import_module("pyarrow.ipc")

    def serialize(value: Any) -> bytes:
        if not isinstance(value, pyarrow.Table | pyarrow.RecordBatch):
            raise TypeError("expected a pyarrow.Table or a pyarrow.RecordBatch")
        sink = pyarrow.BufferOutputStream()
        with ipc.new_stream(sink, value.schema) as writer:
            writer.write(value)
        data: bytes = sink.getvalue().to_pybytes()
        return data

    return Serde("arrow", serialize, lambda data: ipc.open_stream(data).read_all())


JSON: Serde[Any] = json()
"""JSON, decoded to dicts, lists, strings, numbers, booleans and None."""
MSGPACK: Serde[Any] = msgpack()
"""MessagePack, decoded to dicts, lists, strings, numbers, booleans and None."""


def time_windowed(inner: Serde[T], size_ms: int = MAX_TIMESTAMP) -> Serde[Windowed[T]]:
    """Return the serde of keys of time windows: the key, then the start (`WindowedSerdes.TimeWindowedSerde`).

    The end is not in the bytes. It is the start plus `size_ms`, in milliseconds.
    """

    def deserialize(data: bytes) -> Windowed[T]:
        start = int.from_bytes(data[-8:], "big", signed=True)
        end = min(start + size_ms, MAX_TIMESTAMP)
        return Windowed(inner.deserialize(data[:-8]), TimeWindow(start, end))

    def serialize(key: Windowed[T]) -> bytes:
        return inner.serialize(key.key) + key.window.start.to_bytes(8, "big", signed=True)

    return Serde(f"time windows of {inner.name}", serialize, deserialize, lambda key: inner.serialize(key.key))


def session_windowed(inner: Serde[T]) -> Serde[Windowed[T]]:
    """Return the serde of keys of sessions: the key, the end, the start (`WindowedSerdes.SessionWindowedSerde`)."""

    def deserialize(data: bytes) -> Windowed[T]:
        end = int.from_bytes(data[-16:-8], "big", signed=True)
        start = int.from_bytes(data[-8:], "big", signed=True)
        return Windowed(inner.deserialize(data[:-16]), SessionWindow(start, end))

    def serialize(key: Windowed[T]) -> bytes:
        end, start = key.window.end, key.window.start
        return inner.serialize(key.key) + end.to_bytes(8, "big", signed=True) + start.to_bytes(8, "big", signed=True)

    return Serde(f"sessions of {inner.name}", serialize, deserialize, lambda key: inner.serialize(key.key))


_FLAG_OLD, _FLAG_NEW, _FLAG_BOTH = 0, 1, 2


def changed(inner: AnySerde) -> Serde[Any] | DeferredSerde:
    """Return the serde of changes in repartition topics of tables (`ChangedSerializer`, KIP-904).

    The bytes are the old value and flag 0, or the new value and flag 1. With both they are the length of the new value
    as a varint, the new value, the old value and flag 2.
    """
    if not isinstance(inner, Serde):
        return DeferredSerde(lambda defaults: _changed(defaults.resolve_value(inner)))
    return _changed(inner)


def _changed(inner: Serde[T]) -> Serde[Change[T]]:
    def serialize(change: Change[T]) -> bytes:
        new, old = inner.to_bytes(change.new_value), inner.to_bytes(change.old_value)
        if new is not None and old is not None:
            return _varint(len(new)) + new + old + bytes([_FLAG_BOTH])
        if new is not None:
            return new + bytes([_FLAG_NEW])
        if old is not None:
            return old + bytes([_FLAG_OLD])
        raise ValueError("both the old and the new value are None: expected at least one")

    def deserialize(data: bytes) -> Change[T]:
        flag, body = data[-1], data[:-1]
        if flag == _FLAG_BOTH:
            length, start = _read_varint(body)
            end = start + length
            return Change(inner.from_bytes(body[start:end]), inner.from_bytes(body[end:]))
        if flag == _FLAG_NEW:
            return Change(inner.from_bytes(body), None)
        if flag == _FLAG_OLD:
            return Change(None, inner.from_bytes(body))
        raise ValueError(f"unknown flag {flag}: expected 0, 1 or 2")

    return Serde(f"changes of {inner.name}", serialize, deserialize)


def _varint(value: int) -> bytes:
    """Return a zigzag varint (`ByteUtils.writeVarint`)."""
    rest = value << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_varint(data: bytes) -> tuple[int, int]:
    """Return a zigzag varint of a length, and the position after it."""
    value = 0
    for at, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return value >> 1, at + 1
    raise ValueError("a length has more than five bytes")
