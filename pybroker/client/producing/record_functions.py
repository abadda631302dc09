"""A program's functions for the records of a producer: serializers, a partitioner, a delivery callback.

Owns their types, and the check that they are callable. The engine calls them (`native/py/src/client/draft.rs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybroker.client.errors import SettingError
from pybroker.client.producing.delivery_callbacks import OnDelivery

if TYPE_CHECKING:
    # Type checkers support the default (PEP 696) before Python 3.13.
    from typing_extensions import TypeVar

    Key = TypeVar("Key", default=bytes | bytearray)
    Value = TypeVar("Value", default=bytes | bytearray)
else:
    from typing import TypeVar

    Key, Value = TypeVar("Key"), TypeVar("Value")

Serializer = Callable[[Any], bytes | bytearray | None]
"""Converts a key or value to bytes. It is not called for None, which is a missing key, or a tombstone."""
Partitioner = Callable[[bytes | None, Sequence[int], Sequence[int]], int]
"""Returns a partition, from a serialized key, all partitions and those that have a leader; as aiokafka's."""


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions that are applied to a producer's records."""

    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None
    partitioner: Partitioner | str | None = None
    """A function, or a name: see `ProducerSettings.partitioner`."""
    on_delivery: OnDelivery | None = None

    def __post_init__(self) -> None:
        """Raise SettingError for an object that is not callable."""
        for name in ("key_serializer", "value_serializer", "partitioner", "on_delivery"):
            value = getattr(self, name)
            if value is not None and not callable(value) and not (name == "partitioner" and isinstance(value, str)):
                raise SettingError(f"{name}={value!r}: must be a function")
