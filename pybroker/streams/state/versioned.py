"""The typed versioned key-value store (KIP-889)."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from pybroker.streams.errors import InvalidStateStoreError
from pybroker.streams.records import Headers
from pybroker.streams.serdes import AnySerde, Serde
from pybroker.streams.state.cache import FlushListener
from pybroker.streams.state.store import StateStore, StoreContext
from pybroker.streams.state.values import resolve
from pybroker.streams.state.versioned_bytes import (
    PUT_NOT_PUT,
    PUT_VALID_TO_UNDEFINED,
    BytesVersion,
    VersionedBytes,
)

__all__ = ["PUT_NOT_PUT", "PUT_VALID_TO_UNDEFINED", "VersionedKeyValueStore", "VersionedRecord"]

K = TypeVar("K")
V = TypeVar("V")


class VersionedRecord(msgspec.Struct, Generic[V], frozen=True):
    """A version of a value: when it starts to be valid, and when it stops being valid. Times are milliseconds.

    `valid_to` is None for the latest version. The methods of the store leave it None for all versions, as Kafka does.
    """

    value: V
    timestamp: int
    valid_to: int | None = None


class VersionedKeyValueStore(StateStore, Generic[K, V]):
    """A store of the versions of each key (`org.apache.kafka.streams.state.VersionedKeyValueStore`)."""

    def __init__(self, name: str, inner: VersionedBytes, key_serde: AnySerde, value_serde: AnySerde) -> None:
        self.name = name
        self._inner = inner
        self._given_key_serde = key_serde
        self._given_value_serde = value_serde
        self._keys: Serde[K]
        self._values: Serde[V]

    def init(self, context: StoreContext) -> None:
        """Open the store.

        Raises:
            ProcessorStateError: a serde is missing, and the topology has no default.
        """
        self._keys = resolve(self._given_key_serde, context.default_key_serde, "key", self.name)
        self._values = resolve(self._given_value_serde, context.default_value_serde, "value", self.name)
        self._inner.init(context)
        self.is_open = True

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Add a version, or a tombstone if the value is None.

        Returns:
            The timestamp at which the new version stops being valid; `PUT_VALID_TO_UNDEFINED` for the latest version;
            `PUT_NOT_PUT` if it is older than the history retention, and the store does not change.
        """
        return self._inner.put(self._key(key), self._values.to_bytes(value), timestamp)

    def get(self, key: K) -> VersionedRecord[V] | None:
        """Return the latest version of a key; None if there is none, or if it is a tombstone."""
        return self._typed(self._inner.get(self._key(key)))

    def get_as_of(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Return the version that is valid at a timestamp; None if there is none, or if it is beyond the retention."""
        return self._typed(self._inner.get_as_of(self._key(key), timestamp))

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Add a tombstone and return the version that was valid at its timestamp, or None."""
        data = self._key(key)
        previous = None if self._inner.is_expired(timestamp) else self._inner.get_as_of(data, timestamp)
        self._inner.put(data, None, timestamp)
        return self._typed(previous)

    def set_flush_listener(self, listener: FlushListener, send_old_values: bool) -> bool:  # noqa: ARG002 - a versioned store has no cache and no headers
        """Return False: a versioned store has no cache."""
        return False

    def close(self) -> None:
        """Release the data."""
        if self.is_open:
            self._inner.close()
            self.is_open = False

    def restore(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers = ()) -> None:  # noqa: ARG002 - a versioned store has no cache and no headers
        """Apply one record of the changelog."""
        self._inner.restore(key, value, timestamp)

    def _key(self, key: K) -> bytes:
        if not self.is_open:
            raise InvalidStateStoreError(f"store {self.name!r} is closed")
        if key is None:
            raise ValueError(f"invalid key None for store {self.name!r}: expected a key")
        data = self._keys.to_bytes(key)
        assert data is not None
        return data

    def _typed(self, version: BytesVersion | None) -> VersionedRecord[V] | None:
        if version is None:
            return None
        return VersionedRecord(self._values.from_bytes(version[0]), version[1])  # type: ignore[arg-type]
