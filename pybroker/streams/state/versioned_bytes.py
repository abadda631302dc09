"""Versioned stores of bytes: the data, and the layer that logs changes."""

from __future__ import annotations

import abc

from pybroker.streams.state.ordered_map import OrderedMap
from pybroker.streams.state.segments import Segments
from pybroker.streams.state.store import StoreContext
from pybroker.streams.state.store_maps import ENTRIES, SECOND_INDEX, StoreMaps
from pybroker.streams.state.values import LONG
from pybroker.streams.state.versions import SegmentVersions, Version

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


class StoredVersionedBytes(VersionedBytes):
    """The data of a versioned store (`RocksDBVersionedStore`).

    The latest version of a key never expires. Older versions, and tombstones that are the latest version, are in
    segments of the instant at which they stop being valid. A latest version is its 8-byte timestamp and its value.
    """

    def __init__(self, maps: StoreMaps, history_retention_ms: int, segment_interval_ms: int) -> None:
        self._maps = maps
        self._retention_ms = history_retention_ms
        self._latest = maps.map(SECOND_INDEX)
        self._segments = Segments(maps, ENTRIES, history_retention_ms, segment_interval_ms)
        self._numbers = maps.numbers

    def init(self, context: StoreContext) -> None:
        """Open the data."""
        self._maps.open(context.state_directory)
        self._latest = self._maps.map(SECOND_INDEX)
        self._segments.open()

    def is_expired(self, timestamp: int) -> bool:
        """Return whether a version with this timestamp is too old to be put."""
        return timestamp < self._numbers.stream_time - self._retention_ms

    def get(self, key: bytes) -> BytesVersion | None:
        """Return the latest version of a key, or None."""
        latest = self._latest_version(key)
        return (latest[1], latest[0], None) if latest is not None else None

    def get_as_of(self, key: bytes, timestamp: int) -> BytesVersion | None:
        """Return the version of a key that is valid at a timestamp. Only the latest is found beyond the retention."""
        latest = self._latest_version(key)
        if latest is not None and latest[0] <= timestamp:
            return latest[1], latest[0], None
        if self.is_expired(timestamp):
            return None
        for _, segment in self._segments.between(timestamp, forward=False):
            found = _versions(segment, key)
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
        self._numbers.stream_time = max(self._numbers.stream_time, timestamp)
        self._segments.remove_expired(self._numbers.stream_time)
        latest = self._latest_version(key)
        if latest is not None and timestamp >= latest[0]:
            self._replace_latest(key, value, timestamp, latest)
            return PUT_VALID_TO_UNDEFINED
        return self._put_old(key, value, timestamp, latest[0] if latest is not None else None)

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record of the changelog."""
        self.put(key, value, timestamp)

    def close(self) -> None:
        """Release the data."""
        if not self._maps.persistent:
            self._latest.clear()
        self._segments.close()
        self._maps.close()

    def _latest_version(self, key: bytes) -> tuple[int, bytes] | None:
        latest = self._latest.get(key)
        return None if latest is None else (LONG.unpack_from(latest)[0], latest[8:])

    def _replace_latest(self, key: bytes, value: bytes | None, timestamp: int, latest: tuple[int, bytes]) -> None:
        """Make a version the latest one, and move the previous latest version into the segment of this timestamp."""
        if timestamp > latest[0]:
            self._add_latest(key, latest, timestamp)
        if value is None:
            self._latest.remove(key)
        else:
            self._latest.put(key, LONG.pack(timestamp) + value)

    def _add_latest(self, key: bytes, version: Version, valid_to: int) -> bool:
        """Add a version after all others of the segment of `valid_to`. Returns False if that segment is expired."""
        segment = self._segments.create_if_live(self._segments.number(valid_to), self._numbers.stream_time)
        if segment is None:
            return False
        found = _versions(segment, key)
        if found is None:
            found = SegmentVersions([version], valid_to)
        else:
            found.add_latest(version, valid_to)
        segment.put(key, found.to_bytes())
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
            found = _versions(segment, key)
            if found is None:
                continue
            if found.next_timestamp <= timestamp:
                break
            if found.least_timestamp <= timestamp:
                return self._insert(key, (timestamp, value), (number, segment), found)
            next_timestamp = found.least_timestamp
        if next_timestamp is None:
            return self._put_first(key, value, timestamp)
        return self._put_before(key, (timestamp, value), next_timestamp)

    def _insert(self, key: bytes, version: Version, place: tuple[int, OrderedMap], found: SegmentVersions) -> int:
        """Put a version into the middle of a segment: it ends the version that was valid at its timestamp.

        Args:
            key: the key.
            version: the version.
            place: the number of the segment, and the segment.
            found: the versions of the key in this segment.
        """
        number, segment = place
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
        segment.put(key, found.to_bytes())
        return valid_to

    def _put_first(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Put a version that nothing follows, where the key has no latest value."""
        if value is not None:
            self._latest.put(key, LONG.pack(timestamp) + value)
            return PUT_VALID_TO_UNDEFINED
        segment = self._segments.create_if_live(self._segments.number(timestamp), self._numbers.stream_time)
        if segment is None:
            return PUT_NOT_PUT
        found = _versions(segment, key)
        if found is None:
            segment.put(key, SegmentVersions([], timestamp).to_bytes())
        elif found.next_timestamp != timestamp:
            found.add_latest((found.next_timestamp, None), timestamp)
            segment.put(key, found.to_bytes())
        return PUT_VALID_TO_UNDEFINED

    def _put_before(self, key: bytes, version: Version, next_timestamp: int) -> int:
        """Put a version into the segment of the timestamp at which the next version starts."""
        segment = self._segments.create_if_live(self._segments.number(next_timestamp), self._numbers.stream_time)
        if segment is None:
            return PUT_NOT_PUT
        found = _versions(segment, key)
        if found is None:
            found = SegmentVersions([version], next_timestamp)
        elif found.next_timestamp <= version[0]:
            found.add_latest(version, next_timestamp)
        else:
            found.add_earliest(version)
        segment.put(key, found.to_bytes())
        return next_timestamp


def _versions(segment: OrderedMap, key: bytes) -> SegmentVersions | None:
    data = segment.get(key)
    return None if data is None else SegmentVersions.from_bytes(data)


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
