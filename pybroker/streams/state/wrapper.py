"""The store of a table, timestamped or versioned, with one interface."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pybroker.streams.errors import InvalidStateStoreError
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state.cache import FlushListener
from pybroker.streams.state.key_value import TimestampedKeyValueStore
from pybroker.streams.state.versioned import VersionedKeyValueStore, VersionedRecord
from pybroker.streams.state.versioned_bytes import PUT_NOT_PUT, PUT_VALID_TO_UNDEFINED

__all__ = ["PUT_IS_LATEST", "PUT_NOT_PUT", "TableStore"]

K = TypeVar("K")
V = TypeVar("V")

PUT_IS_LATEST = PUT_VALID_TO_UNDEFINED
"""The result of a put after which the new value is the latest one of its key."""


class TableStore(Generic[K, V]):
    """Reads and writes a TimestampedKeyValueStore or a VersionedKeyValueStore (`KeyValueStoreWrapper`).

    The store itself belongs to the task. This class neither opens nor closes the store.

    Raises:
        InvalidStateStoreError: the store has another type.
    """

    def __init__(self, store: Any) -> None:
        if not isinstance(store, TimestampedKeyValueStore | VersionedKeyValueStore):
            raise InvalidStateStoreError(
                f"invalid store {store!r} of a table: expected a timestamped or a versioned key-value store"
            )
        self.store: TimestampedKeyValueStore[K, V] | VersionedKeyValueStore[K, V] = store

    @property
    def name(self) -> str:
        """The name of the store."""
        return self.store.name

    @property
    def is_versioned(self) -> bool:
        """Whether the store keeps several versions of a value."""
        return isinstance(self.store, VersionedKeyValueStore)

    def get(self, key: K) -> ValueAndTimestamp[V] | None:
        """Return the latest value of a key and its timestamp, or None."""
        if isinstance(self.store, VersionedKeyValueStore):
            return _without_end(self.store.get(key))
        return self.store.get(key)

    def get_as_of(self, key: K, timestamp: int) -> ValueAndTimestamp[V] | None:
        """Return the value that a key had at a timestamp, or None.

        Raises:
            NotImplementedError: the store is not versioned.
        """
        if isinstance(self.store, VersionedKeyValueStore):
            return _without_end(self.store.get_as_of(key, timestamp))
        raise NotImplementedError(f"store {self.name!r} is not versioned: it has no value as of {timestamp}")

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Set the value of a key, or delete the key if the value is None.

        Returns:
            `PUT_IS_LATEST` if the value is now the latest one; `PUT_NOT_PUT` if a versioned store rejects the value as
            too old; otherwise the timestamp of the version that follows.
        """
        if isinstance(self.store, VersionedKeyValueStore):
            return self.store.put(key, value, timestamp)
        self.store.put(key, None if value is None else ValueAndTimestamp(value, timestamp))
        return PUT_IS_LATEST

    def set_flush_listener(self, listener: FlushListener, send_old_values: bool) -> bool:
        """Set the receiver of the updates that the cache flushes. Returns False if the store has no cache."""
        return self.store.set_flush_listener(listener, send_old_values)


def _without_end(record: VersionedRecord[V] | None) -> ValueAndTimestamp[V] | None:
    return None if record is None else ValueAndTimestamp(record.value, record.timestamp)
