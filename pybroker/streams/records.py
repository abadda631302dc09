"""Values that flow through a topology: records, changes of tables, and where a record comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

K = TypeVar("K")
V = TypeVar("V")

Headers = tuple[tuple[str, bytes | None], ...]
"""The headers of a record, in order; a key can occur more than once."""

NO_TIMESTAMP = -1
"""The timestamp of a record that has none (`ConsumerRecord.NO_TIMESTAMP`), in milliseconds."""


class Record(msgspec.Struct, Generic[K, V], frozen=True):
    """One record inside a topology (`org.apache.kafka.streams.processor.api.Record`).

    `timestamp` is in milliseconds since the epoch. A record is immutable; the `with_*` methods return changed copies.
    """

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> Record[Any, V]:
        """Return this record with another key."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> Record[K, Any]:
        """Return this record with another value."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        """Return this record with another timestamp, in milliseconds.

        Raises:
            ValueError: the timestamp is negative.
        """
        if timestamp < 0:
            raise ValueError(f"invalid timestamp {timestamp}: expected milliseconds since the epoch, >= 0")
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Iterable[tuple[str, bytes | None]]) -> Record[K, V]:
        """Return this record with other headers."""
        return Record(self.key, self.value, self.timestamp, tuple(headers))


class Change(msgspec.Struct, Generic[V], frozen=True):
    """One update of a table: the new value and, where a downstream operator needs it, the value before.

    `is_latest` is false if a versioned store already has a record of this key with a later timestamp.
    """

    new_value: V | None
    old_value: V | None
    is_latest: bool = True


class ValueAndTimestamp(msgspec.Struct, Generic[V], frozen=True):
    """A value of a timestamped store, and the timestamp of the record that set it, in milliseconds."""

    value: V
    timestamp: int


class RecordMetadata(msgspec.Struct, frozen=True):
    """Where the input record comes from that the topology is processing."""

    topic: str
    partition: int
    offset: int


class RecordContext(msgspec.Struct, frozen=True):
    """Position, timestamp and headers of the record that a task is processing (`ProcessorRecordContext`).

    `topic` is None and `offset` and `partition` are -1 for a record that a punctuator forwards.
    """

    timestamp: int
    offset: int
    partition: int
    topic: str | None
    headers: Headers = ()
