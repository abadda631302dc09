"""Formats of stored values: a value with its timestamp, and serdes that a store resolves when it opens."""

from __future__ import annotations

import struct
from typing import Any

from pybroker.streams.errors import ProcessorStateError
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.serdes import AnySerde, DefaultSerdes, DeferredSerde, Serde

LONG = struct.Struct(">q")
INT = struct.Struct(">i")


def timestamped(serde: Serde[Any]) -> Serde[ValueAndTimestamp[Any]]:
    """Return the serde of a value with its timestamp: 8 bytes big-endian, then the value (`ValueAndTimestampSerde`)."""

    def serialize(value: ValueAndTimestamp[Any]) -> bytes:
        return LONG.pack(value.timestamp) + serde.serialize(value.value)

    def deserialize(data: bytes) -> ValueAndTimestamp[Any]:
        return ValueAndTimestamp(serde.deserialize(data[8:]), LONG.unpack_from(data)[0])

    return Serde(f"timestamped {serde.name}", serialize, deserialize)


def resolve(serde: AnySerde, default: Serde[Any] | None, role: str, store: str) -> Serde[Any]:
    """Return the serde of a store, or the default serde of the topology.

    Raises:
        ProcessorStateError: both are None.
    """
    if isinstance(serde, DeferredSerde):
        return serde.resolve(DefaultSerdes(default, default))
    chosen = serde or default
    if chosen is None:
        raise ProcessorStateError(
            f"store {store!r} has no {role} serde: set {role}_serde of the operator, or default.{role}.serde"
        )
    return chosen


def resolve_if_known(serde: AnySerde, default: Serde[Any] | None) -> AnySerde:
    """Return the serde of a store, as `resolve` does. Without a default, a serde that needs one stays as it is."""
    if isinstance(serde, DeferredSerde):
        return serde if default is None else serde.resolve(DefaultSerdes(default, default))
    return serde or default
