"""Takes snapshots of a metadata log while it is in use, and removes old snapshots and the log that they cover.

Owns the steps. Batches are encoded on the loop's thread, a millisecond or two each, and written on another thread. Then
old snapshots are removed, and the log before the oldest kept snapshot is deleted. One snapshot is taken at a time. A
disk failure loses a snapshot, not the log. Must not know voters or followers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.snapshot.snapshot_header import UNKNOWN
from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPace, Stored, may_go
from pybroker.controller.quorum.snapshot.snapshots import (
    SnapshotId,
    SnapshotWriter,
    encode_snapshot,
    list_snapshots,
    open_snapshot,
    remove_parts,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPolicy
    from pybroker.controller.quorum.snapshot.snapshots import SnapshotFile
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.messages.records.voters import VotersRecord

    Elsewhere = Callable[..., Awaitable[Any]]
    """Calls a function with arguments in a thread, as `asyncio.to_thread`."""

log = logging.getLogger("pybroker.controller")


class TrimmedLog(Protocol):
    """A log whose start can be advanced."""

    @property
    def size_bytes(self) -> int:
        """Size of the segments in bytes."""

    def advance_start(self, offset: int) -> list[Path]:
        """Advance the log start; return the deleted segments' files."""


class Checkpointer:
    """The snapshots in one directory. Used from one event loop."""

    def __init__(self, directory: Path, policy: SnapshotPolicy, now_ms: Callable[[], int]) -> None:
        """`now_ms` returns the wall-clock time."""
        self._directory = directory
        self._policy = policy
        self._now_ms = now_ms
        self._pace = SnapshotPace(policy, now_ms())
        self._is_at_work = False

    def found(self, newest: SnapshotFile) -> None:
        """Record the snapshot that a voter starts with. If Kafka wrote it, a new one is taken soon."""
        if newest.raft_index == UNKNOWN:
            self._pace.hasten()

    def note(self, size: int) -> None:
        """Count the bytes of committed batches."""
        self._pace.note(size)

    @property
    def is_due(self) -> bool:
        """Whether a snapshot is due, and none is in progress."""
        return not self._is_at_work and self._pace.is_due(self._now_ms())

    async def take(
        self, image: MetadataImage, raft_index: int, elsewhere: Elsewhere, *, voters: VotersRecord | None = None
    ) -> SnapshotId | None:
        """Take the snapshot of an image whose last entry has `raft_index`; None if the disk fails.

        `elsewhere` calls a function in a thread.
        """
        if self._is_at_work:
            return None
        self._is_at_work = True
        now_ms = self._now_ms()
        self._pace.taken(now_ms)
        snapshot = SnapshotId(image.offset + 1, image.epoch)
        path = self._directory / snapshot.file_name
        try:
            writer = await elsewhere(SnapshotWriter, path)
            try:
                for chunk in encode_snapshot(image, snapshot, raft_index, now_ms, voters=voters):
                    await elsewhere(writer.write, chunk)
                size = writer.size
                await elsewhere(writer.finish)
            finally:
                await elsewhere(writer.abandon)
        except OSError as error:
            log.error("Failed to write the snapshot %s: %s; retrying with the next snapshot", path, error)
            return None
        finally:
            self._is_at_work = False
        log.info("Wrote the snapshot %s of %d bytes", path.name, size)
        return snapshot

    def clean(self, trimmed: TrimmedLog) -> SnapshotId | None:
        """Remove old snapshots, and the log before the oldest one kept; None if all are kept. Blocks on the disk.

        Raises `OSError`.
        """
        remove_parts(self._directory)
        snapshots = list_snapshots(self._directory)
        stored = [self._stored(snapshot) for snapshot in snapshots]
        kept = None
        while may_go(stored, trimmed.size_bytes, self._policy, self._now_ms()):
            # The log first: at any time all deleted records are in a snapshot.
            kept = snapshots[1]
            for path in trimmed.advance_start(kept.end_offset):
                path.unlink(missing_ok=True)
            (self._directory / snapshots[0].file_name).unlink(missing_ok=True)
            log.info("Removing the snapshot %s and the log before offset %d", snapshots[0].file_name, kept.end_offset)
            del snapshots[0], stored[0]
        return kept

    def _stored(self, snapshot: SnapshotId) -> Stored:
        path = self._directory / snapshot.file_name
        try:
            found = open_snapshot(path)
        except MetadataLogError as error:
            log.warning("%s; keeping it until it expires, and using the later ones", error)
            return Stored(path.stat().st_size, int(path.stat().st_mtime * 1000))
        return Stored(found.size, found.timestamp_ms)
