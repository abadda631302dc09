"""The rules for creating snapshots of the metadata log, and for deleting the oldest snapshot.

Owns Kafka's two limits for each: bytes and time. Must not know files; time is an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

BYTES_BETWEEN = 20 << 20
"""Kafka's default of metadata.log.max.record.bytes.between.snapshots."""
INTERVAL_MS = 60 * 60 * 1000
"""Kafka's default of metadata.log.max.snapshot.interval.ms."""
RETENTION_BYTES = 100 << 20
"""Kafka's default of metadata.max.retention.bytes."""
RETENTION_MS = 7 * 24 * 3600 * 1000
"""Kafka's default of metadata.max.retention.ms."""


class SnapshotPolicy(NamedTuple):
    """The limits at which snapshots are created and deleted."""

    bytes_between: int = BYTES_BETWEEN
    interval_ms: int = INTERVAL_MS
    """0: time alone never makes a snapshot due."""
    retention_bytes: int = RETENTION_BYTES
    """Maximum total size of the log and its snapshots; -1 for no limit."""
    retention_ms: int = RETENTION_MS
    """Maximum age of a snapshot; -1 for no limit."""


class Stored(msgspec.Struct, frozen=True):
    """Age and size of a snapshot on disk."""

    size: int
    timestamp_ms: int
    """Append time of the last record in the snapshot."""


class SnapshotPace:
    """Counts the bytes committed since the last snapshot."""

    def __init__(self, policy: SnapshotPolicy, now_ms: int) -> None:
        self._policy = policy
        self._bytes = 0
        self._since_ms = now_ms

    def note(self, size: int) -> None:
        """Count the bytes of committed batches."""
        self._bytes += size

    def hasten(self) -> None:
        """Make a snapshot due at the next commit."""
        self._bytes = self._policy.bytes_between

    def is_due(self, now_ms: int) -> bool:
        """Return whether a snapshot is due: enough new bytes, or any new records and the interval has passed."""
        policy = self._policy
        if self._bytes >= policy.bytes_between:
            return True
        return 0 < policy.interval_ms <= now_ms - self._since_ms and self._bytes > 0

    def taken(self, now_ms: int) -> None:
        """Reset the counter when a snapshot begins; later commits count for the next one."""
        self._bytes = 0
        self._since_ms = now_ms


def may_go(snapshots: Sequence[Stored], log_bytes: int, policy: SnapshotPolicy, now_ms: int) -> bool:
    """Return whether to delete the oldest snapshot and the log before the next one. False for a single snapshot."""
    if len(snapshots) < 2:
        return False
    if 0 <= policy.retention_ms < now_ms - snapshots[0].timestamp_ms:
        return True
    return 0 <= policy.retention_bytes < log_bytes + sum(snapshot.size for snapshot in snapshots)
