"""Old versions of one key inside one segment of a versioned store."""

from __future__ import annotations

import struct
from bisect import bisect_right
from operator import itemgetter

Version = tuple[int, bytes | None]
"""When a version starts to be valid, in milliseconds, and its value; None for a tombstone."""


NO_VALUE = -1
"""The length of a tombstone."""
TIME_AND_LENGTH = struct.Struct(">qi")
TIME = struct.Struct(">q")


class SegmentVersions:
    """Versions of one key that follow each other without gaps, up to `next_timestamp`.

    A version belongs to the segment of the instant at which it stops being valid. A segment can also contain only the
    end of a version before it, the timestamp of a tombstone: then `versions` is empty, and both limits are equal
    (Kafka calls that segment degenerate, `RocksDBVersionedStoreSegmentValueFormatter`).
    """

    __slots__ = ("next_timestamp", "versions")

    def __init__(self, versions: list[Version], next_timestamp: int) -> None:
        self.versions = versions
        """The versions, by ascending timestamp."""
        self.next_timestamp = next_timestamp
        """When the last version stops being valid, in milliseconds."""

    def to_bytes(self) -> bytes:
        """Return the 8-byte next timestamp, then the 8-byte timestamp, 4-byte length and bytes of each version.

        The length of a tombstone is -1. Kafka's order is the reverse; only the changelog is a common format.
        """
        parts = [TIME.pack(self.next_timestamp)]
        for timestamp, value in self.versions:
            parts.append(TIME_AND_LENGTH.pack(timestamp, NO_VALUE if value is None else len(value)))
            if value is not None:
                parts.append(value)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> SegmentVersions:
        """Return the versions of their bytes."""
        versions: list[Version] = []
        at = TIME.size
        while at < len(data):
            timestamp, length = TIME_AND_LENGTH.unpack_from(data, at)
            at += TIME_AND_LENGTH.size
            versions.append((timestamp, None if length == NO_VALUE else data[at : at + length]))
            at += max(length, 0)
        return cls(versions, TIME.unpack_from(data)[0])

    @property
    def least_timestamp(self) -> int:
        """When the first version starts to be valid, in milliseconds."""
        return self.versions[0][0] if self.versions else self.next_timestamp

    def index(self, timestamp: int) -> int:
        """Return the index of the version that is valid at a timestamp; the timestamp is inside the segment."""
        return bisect_right(self.versions, timestamp, key=itemgetter(0)) - 1

    def valid_to(self, index: int) -> int:
        """Return when a version stops being valid, in milliseconds."""
        return self.versions[index + 1][0] if index + 1 < len(self.versions) else self.next_timestamp

    def add_latest(self, version: Version, valid_to: int) -> None:
        """Add a version after all others. A gap before it becomes a tombstone."""
        if version[0] > self.next_timestamp:
            self.versions.append((self.next_timestamp, None))
        self.versions.append(version)
        self.next_timestamp = valid_to

    def add_earliest(self, version: Version) -> None:
        """Add a version before all others."""
        self.versions.insert(0, version)
