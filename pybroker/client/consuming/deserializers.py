"""Calls a program's deserializers on keys and values of records.

Must not know a partition's state: `pybroker.client.consuming.subscription_state` keeps the position at a record that
fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybroker.client import native
from pybroker.client.errors import DeserializationError, SettingError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Key = TypeVar("Key", default=bytes)
    Value = TypeVar("Value", default=bytes)
else:
    from typing import TypeVar

    Key, Value = TypeVar("Key"), TypeVar("Value")
Part = TypeVar("Part")
Deserializer = Callable[[bytes], Part]
"""Converts the bytes of a key or value to an object. It is not called for None, which stays None."""


@dataclass(frozen=True, slots=True)
class Deserializers:
    """The deserializers of keys and of values; with None the bytes are returned."""

    key: Deserializer[Any] | None = None
    value: Deserializer[Any] | None = None

    def __post_init__(self) -> None:
        """Raise SettingError for an object that is not callable."""
        for name, function in (("key_deserializer", self.key), ("value_deserializer", self.value)):
            if function is not None and not callable(function):
                raise SettingError(f"{name}={function!r}: must be a function")

    def read(
        self, records: list[native.Record[Any, Any]]
    ) -> tuple[list[native.Record[Any, Any]], DeserializationError | None]:
        """Deserialize records up to the first failure. Returns those records and the error, None without a failure."""
        if self.key is None and self.value is None:
            return records, None
        made: list[native.Record[Any, Any]] = []
        for record in records:
            part = "key"
            try:
                key = self._apply(self.key, record.key)
                part = "value"
                value = self._apply(self.value, record.value)
            except Exception as error:  # noqa: BLE001 (whatever the program's function raises is the record's failure)
                failure = DeserializationError(record.topic, record.partition, record.offset, part, error)
                failure.__cause__ = error
                return made, failure
            made.append(record.with_parts(key, value))
        return made, None

    @staticmethod
    def _apply(function: Deserializer[Any] | None, given: Any) -> Any:
        return given if function is None or given is None else function(given)
