"""When a snapshot of the metadata log is due, and when the oldest one is deleted, with the log before the next one.

Owns Kafka's two rules of each. Must not know files; time is an argument.
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
    """When snapshots are taken, and how long they are kept."""

    bytes_between: int = BYTES_BETWEEN
    interval_ms: int = INTERVAL_MS
    """0: no snapshot is taken only because of its age."""
    retention_bytes: int = RETENTION_BYTES
    """Limit for log and snapshots together; -1 for no limit."""
    retention_ms: int = RETENTION_MS
    """-1 for no limit."""


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
        """Make a snapshot due as soon as something is committed."""
        self._bytes = self._policy.bytes_between

    def is_due(self, now_ms: int) -> bool:
        """Return whether a snapshot is due: because of many new bytes, or of new records after the interval."""
        policy = self._policy
        if self._bytes >= policy.bytes_between:
            return True
        return 0 < policy.interval_ms <= now_ms - self._since_ms and self._bytes > 0

    def taken(self, now_ms: int) -> None:
        """Reset the counter when a snapshot begins; later commits count for the next one."""
        self._bytes = 0
        self._since_ms = now_ms


def may_go(snapshots: Sequence[Stored], log_bytes: int, policy: SnapshotPolicy, now_ms: int) -> bool:
    """Return whether to delete the oldest snapshot, and the log before the next; never the only one."""
    if len(snapshots) < 2:
        return False
    if 0 <= policy.retention_ms < now_ms - snapshots[0].timestamp_ms:
        return True
    return 0 <= policy.retention_bytes < log_bytes + sum(snapshot.size for snapshot in snapshots)
