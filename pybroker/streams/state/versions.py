"""Old versions of one key inside one segment of a versioned store."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

Version = tuple[int, bytes | None]
"""When a version starts to be valid, in milliseconds, and its value; None for a tombstone."""


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
