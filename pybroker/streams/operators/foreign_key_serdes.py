"""The bytes of subscriptions, responses and combined keys of foreign-key joins. They equal Kafka's."""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any

from pybroker.streams.errors import SerializationError
from pybroker.streams.operators.default_serdes import default_serdes
from pybroker.streams.operators.foreign_key_values import (
    CombinedKey,
    Instruction,
    SubscriptionResponseWrapper,
    SubscriptionWrapper,
)
from pybroker.streams.processor import ProcessorContext
from pybroker.streams.serdes import AnySerde, DefaultSerdes, Serde

_NO_HASH = 0x80
_VERSION_BITS = 0x7F
_HASH_SIZE = 16
_INT32 = struct.Struct(">i")


class ForeignKeySerdes:
    """The serdes of one foreign-key join. Serdes that are None are the application's defaults.

    The defaults are known when a task starts. Each processor of the join calls `use_defaults` before the first record.
    """

    def __init__(self, primary_key: AnySerde, foreign_key: AnySerde, value: AnySerde, foreign_value: AnySerde) -> None:
        """Define the serdes.

        Args:
            primary_key: the keys of the left-hand table.
            foreign_key: the keys of the right-hand table.
            value: the values of the left-hand table.
            foreign_value: the values of the right-hand table.
        """
        self._primary_key = primary_key
        self._foreign_key = foreign_key
        self._value = value
        self._foreign_value = foreign_value
        self._defaults = DefaultSerdes(None, None)

    def use_defaults(self, context: ProcessorContext) -> None:
        """Use the defaults of the application for serdes that are None."""
        self._defaults = default_serdes(context)

    @cached_property
    def primary_key(self) -> Serde[Any]:
        """The serde of the left-hand table's keys."""
        return self._defaults.resolve_key(self._primary_key)

    @cached_property
    def foreign_key(self) -> Serde[Any]:
        """The serde of the right-hand table's keys."""
        return self._defaults.resolve_key(self._foreign_key)

    @cached_property
    def value(self) -> Serde[Any]:
        """The serde of the left-hand table's values."""
        return self._defaults.resolve_value(self._value)

    @cached_property
    def foreign_value(self) -> Serde[Any]:
        """The serde of the right-hand table's values."""
        return self._defaults.resolve_value(self._foreign_value)

    @property
    def subscription(self) -> Serde[SubscriptionWrapper]:
        """The serde of subscriptions (`SubscriptionWrapperSerde`)."""
        return Serde("foreign-key subscription", self._subscription_bytes, self._subscription)

    @property
    def response(self) -> Serde[SubscriptionResponseWrapper]:
        """The serde of responses (`SubscriptionResponseWrapperSerde`)."""
        return Serde("foreign-key response", self._response_bytes, self._response)

    def _subscription_bytes(self, subscription: SubscriptionWrapper) -> bytes:
        # Layout: one bit "no hash", seven bits of version, instruction, hash, primary key, int32 partition.
        flag = _NO_HASH if subscription.hash is None else 0
        data = bytes((subscription.version | flag, subscription.instruction))
        data += (subscription.hash or b"") + self.primary_key.serialize(subscription.primary_key)
        if subscription.version == 0:
            return data
        return data + _INT32.pack(subscription.primary_partition)

    def _subscription(self, data: bytes) -> SubscriptionWrapper:
        version, stored_hash, start = _head(data, 2)
        end, partition = len(data), None
        if version > 0:
            end -= _INT32.size
            partition = _INT32.unpack_from(data, end)[0]
        if end < start:
            raise ValueError(f"expected at least {start} bytes before the partition, found {end}")
        primary_key = self.primary_key.deserialize(data[start:end])
        return SubscriptionWrapper(stored_hash, Instruction(data[1]), primary_key, partition, version)

    def _response_bytes(self, response: SubscriptionResponseWrapper) -> bytes:
        # Layout: one bit "no hash", seven bits of version, hash, foreign value.
        flag = _NO_HASH if response.original_value_hash is None else 0
        data = bytes((response.version | flag,)) + (response.original_value_hash or b"")
        return data + (self.foreign_value.to_bytes(response.foreign_value) or b"")

    def _response(self, data: bytes) -> SubscriptionResponseWrapper:
        version, stored_hash, start = _head(data, 1)
        # A value of zero bytes and no value have the same bytes.
        value = self.foreign_value.deserialize(data[start:]) if len(data) > start else None
        return SubscriptionResponseWrapper(stored_hash, value, None, version)


def _head(data: bytes, hash_at: int) -> tuple[int, bytes | None, int]:
    """Return the version, the hash or None, and the position after the hash."""
    version = data[0] & _VERSION_BITS
    if data[0] & _NO_HASH:
        return version, None, hash_at
    end = hash_at + _HASH_SIZE
    if len(data) < end:
        raise ValueError(f"expected at least {end} bytes, found {len(data)}")
    return version, data[hash_at:end], end


class CombinedKeySchema:
    """Converts combined keys to the keys of the subscription store: size of foreign key, foreign key, primary key."""

    def __init__(self, serdes: ForeignKeySerdes) -> None:
        self.serdes = serdes

    def to_bytes(self, foreign_key: Any, primary_key: Any) -> bytes:
        """Return the bytes of a combined key."""
        return self.prefix_bytes(foreign_key) + self.serdes.primary_key.serialize(primary_key)

    def prefix_bytes(self, foreign_key: Any) -> bytes:
        """Return the bytes that the combined keys of one foreign key start with."""
        data = self.serdes.foreign_key.serialize(foreign_key)
        return _INT32.pack(len(data)) + data

    def from_bytes(self, data: bytes) -> CombinedKey:
        """Return the combined key of bytes.

        Raises:
            SerializationError: the bytes are shorter than the size of the foreign key.
        """
        start = _INT32.size
        size = _INT32.unpack_from(data)[0] if len(data) >= start else -1
        if not 0 <= size <= len(data) - start:
            raise SerializationError(f"invalid combined key {data[:50]!r}: size {size} of the foreign key is too large")
        foreign_key = self.serdes.foreign_key.from_bytes(data[start : start + size])
        return CombinedKey(foreign_key, self.serdes.primary_key.from_bytes(data[start + size :]))
