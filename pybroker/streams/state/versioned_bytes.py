"""Versioned stores of bytes: in memory, and the layer that logs changes."""

from __future__ import annotations

import abc

from pybroker.streams.state.segments import Segments
from pybroker.streams.state.store import StoreContext
from pybroker.streams.state.versions import SegmentVersions

PUT_VALID_TO_UNDEFINED = -1
"""The result of a put of the latest version, which has no end (`PUT_RETURN_CODE_VALID_TO_UNDEFINED`)."""
PUT_NOT_PUT = -(1 << 63)
"""The result of a put that is older than the history retention (`PUT_RETURN_CODE_NOT_PUT`)."""

BytesVersion = tuple[bytes, int, int | None]
"""A value, when it starts to be valid, and when it stops being valid (None for the latest version)."""


class VersionedBytes(abc.ABC):
    """A store of the versions of each key."""

    def init(self, context: StoreContext) -> None:  # noqa: B027 - a store in memory needs no context
        """Open the store."""

    @abc.abstractmethod
    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Add a version, or a tombstone. Returns when it stops being valid, or one of the codes of this module."""

    @abc.abstractmethod
    def get(self, key: bytes) -> BytesVersion | None:
        """Return the latest version of a key; None if there is none, or if it is a tombstone."""

    @abc.abstractmethod
    def get_as_of(self, key: bytes, timestamp: int) -> BytesVersion | None:
        """Return the version of a key that is valid at a timestamp, or None."""

    @abc.abstractmethod
    def is_expired(self, timestamp: int) -> bool:
        """Return whether a version with this timestamp is too old to be put."""

    @abc.abstractmethod
    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record of the changelog."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release the data."""


class InMemoryVersionedBytes(VersionedBytes):
    """The data of a versioned store, in memory (`RocksDBVersionedStore`).

    The latest version of a key never expires. Older versions, and tombstones that are the latest version, are in
    segments of the instant at which they stop being valid.
    """

    def __init__(self, history_retention_ms: int, segment_interval_ms: int) -> None:
        self._retention_ms = history_retention_ms
        self._latest: dict[bytes, tuple[int, bytes]] = {}
        self._segments: Segments[dict[bytes, SegmentVersions]] = Segments(
            history_retention_ms, segment_interval_ms, dict
        )
        self._stream_time = -1

    def is_expired(self, timestamp: int) -> bool:
        """Return whether a version with this timestamp is too old to be put."""
        return timestamp < self._stream_time - self._retention_ms

    def get(self, key: bytes) -> BytesVersion | None:
        """Return the latest version of a key, or None."""
        latest = self._latest.get(key)
        return (latest[1], latest[0], None) if latest is not None else None

    def get_as_of(self, key: bytes, timestamp: int) -> BytesVersion | None:
        """Return the version of a key that is valid at a timestamp. Only the latest is found beyond the retention."""
        latest = self._latest.get(key)
        if latest is not None and latest[0] <= timestamp:
            return latest[1], latest[0], None
        if self.is_expired(timestamp):
            return None
        for _, segment in self._segments.between(timestamp, forward=False):
            found = segment.get(key)
            if found is None or found.least_timestamp > timestamp:
                continue
            if found.next_timestamp <= timestamp:
                return None
            index = found.index(timestamp)
            start, value = found.versions[index]
            return (value, start, found.valid_to(index)) if value is not None else None
        return None

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Add a version, or a tombstone. Returns when it stops being valid, or one of the codes of this module."""
        if self.is_expired(timestamp):
            return PUT_NOT_PUT
        self._stream_time = max(self._stream_time, timestamp)
        self._segments.remove_expired(self._stream_time)
        latest = self._latest.get(key)
        if latest is not None and timestamp >= latest[0]:
            self._replace_latest(key, value, timestamp, latest)
            return PUT_VALID_TO_UNDEFINED
        return self._put_old(key, value, timestamp, latest[0] if latest is not None else None)

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record of the changelog."""
        self.put(key, value, timestamp)

    def close(self) -> None:
        """Release the data."""
        self._latest.clear()
        self._segments.clear()

    def _replace_latest(self, key: bytes, value: bytes | None, timestamp: int, latest: tuple[int, bytes]) -> None:
        """Make a version the latest one, and move the previous latest version into the segment of this timestamp."""
        if timestamp > latest[0]:
            self._add_latest(key, latest, timestamp)
        if value is None:
            del self._latest[key]
        else:
            self._latest[key] = (timestamp, value)

    def _add_latest(self, key: bytes, version: tuple[int, bytes | None], valid_to: int) -> bool:
        """Add a version after all others of the segment of `valid_to`. Returns False if that segment is expired."""
        segment = self._segments.create_if_live(self._segments.number(valid_to), self._stream_time)
        if segment is None:
            return False
        found = segment.get(key)
        if found is None:
            segment[key] = SegmentVersions([version], valid_to)
        else:
            found.add_latest(version, valid_to)
        return True

    def _put_old(self, key: bytes, value: bytes | None, timestamp: int, next_timestamp: int | None) -> int:
        """Put a version that does not replace the latest version.

        Args:
            key: the key.
            value: the value; None for a tombstone.
            timestamp: when the version starts to be valid.
            next_timestamp: when the latest version starts to be valid; None if the key has none.
        """
        for number, segment in self._segments.between(timestamp, forward=False):
            found = segment.get(key)
            if found is None:
                continue
            if found.next_timestamp <= timestamp:
                break
            if found.least_timestamp <= timestamp:
                return self._insert(key, (timestamp, value), number, found)
            next_timestamp = found.least_timestamp
        if next_timestamp is None:
            return self._put_first(key, value, timestamp)
        return self._put_before(key, (timestamp, value), next_timestamp)

    def _insert(self, key: bytes, version: tuple[int, bytes | None], number: int, found: SegmentVersions) -> int:
        """Put a version into the middle of a segment: it ends the version that was valid at its timestamp."""
        timestamp = version[0]
        index = found.index(timestamp)
        valid_to = found.valid_to(index)
        previous = found.versions[index]
        if previous[0] == timestamp:
            found.versions[index] = version
        elif self._segments.number(timestamp) != number:
            # The previous version now ends in an older segment. It is lost if that segment is expired.
            self._add_latest(key, previous, timestamp)
            found.versions[index] = version
        else:
            found.versions.insert(index + 1, version)
        return valid_to

    def _put_first(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Put a version that nothing follows, where the key has no latest value."""
        if value is not None:
            self._latest[key] = (timestamp, value)
            return PUT_VALID_TO_UNDEFINED
        segment = self._segments.create_if_live(self._segments.number(timestamp), self._stream_time)
        if segment is None:
            return PUT_NOT_PUT
        found = segment.get(key)
        if found is None:
            segment[key] = SegmentVersions([], timestamp)
        elif found.next_timestamp != timestamp:
            found.add_latest((found.next_timestamp, None), timestamp)
        return PUT_VALID_TO_UNDEFINED

    def _put_before(self, key: bytes, version: tuple[int, bytes | None], next_timestamp: int) -> int:
        """Put a version into the segment of the timestamp at which the next version starts."""
        segment = self._segments.create_if_live(self._segments.number(next_timestamp), self._stream_time)
        if segment is None:
            return PUT_NOT_PUT
        found = segment.get(key)
        if found is None:
            segment[key] = SegmentVersions([version], next_timestamp)
        elif found.next_timestamp <= version[0]:
            found.add_latest(version, next_timestamp)
        else:
            found.add_earliest(version)
        return next_timestamp


class LoggedVersionedBytes(VersionedBytes):
    """Appends each put to the changelog, with the timestamp of the version.

    The class in Kafka is `ChangeLoggingVersionedKeyValueBytesStore`. A put that is older than the history retention is
    logged too, as in Kafka.
    """

    def __init__(self, inner: VersionedBytes, name: str) -> None:
        self.inner = inner
        self._name = name
        self._context: StoreContext | None = None

    def init(self, context: StoreContext) -> None:
        """Open the store below."""
        self._context = context
        self.inner.init(context)

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Add a version and log it."""
        valid_to = self.inner.put(key, value, timestamp)
        assert self._context is not None
        self._context.log_change(self._name, key, value, timestamp, ())
        return valid_to

    def get(self, key: bytes) -> BytesVersion | None:
        """Return the latest version of a key, or None."""
        return self.inner.get(key)

    def get_as_of(self, key: bytes, timestamp: int) -> BytesVersion | None:
        """Return the version of a key that is valid at a timestamp, or None."""
        return self.inner.get_as_of(key, timestamp)

    def is_expired(self, timestamp: int) -> bool:
        """Return whether a version with this timestamp is too old to be put."""
        return self.inner.is_expired(timestamp)

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record of the changelog to the store below."""
        self.inner.restore(key, value, timestamp)

    def close(self) -> None:
        """Close the store below."""
        self.inner.close()
