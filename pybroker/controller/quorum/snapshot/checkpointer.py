"""Making snapshots of one metadata log while it is in use, and removing what they stand for.

Owns the steps: encode a batch on the loop's thread, write it elsewhere, so that no step takes the loop for more than a
millisecond or two; then remove old snapshots and cut the log below the oldest that is kept. One is made at a time, and
a failure of the disk costs a snapshot, not the log. Must not know who votes or follows.
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
    """The log as far as its beginning is concerned."""

    @property
    def size_bytes(self) -> int:
        """Bytes of its segments."""

    def advance_start(self, offset: int) -> list[Path]:
        """Move the start forward; return the files that are out of use then."""


class Checkpointer:
    """The snapshots in one directory. Used from one event loop."""

    def __init__(self, directory: Path, policy: SnapshotPolicy, now_ms: Callable[[], int]) -> None:
        """`now_ms` is the wall clock."""
        self._directory = directory
        self._policy = policy
        self._now_ms = now_ms
        self._pace = SnapshotPace(policy, now_ms())
        self._is_at_work = False

    def found(self, newest: SnapshotFile) -> None:
        """Note the snapshot that a voter begins with: behind one of Kafka's, one that others can use is made soon."""
        if newest.raft_index == UNKNOWN:
            self._pace.hasten()

    def note(self, size: int) -> None:
        """Note that so many bytes of batches were committed."""
        self._pace.note(size)

    @property
    def is_due(self) -> bool:
        """Whether a snapshot is to be made, and none is being made."""
        return not self._is_at_work and self._pace.is_due(self._now_ms())

    async def take(
        self, image: MetadataImage, raft_index: int, elsewhere: Elsewhere, *, voters: VotersRecord | None = None
    ) -> SnapshotId | None:
        """Make the snapshot of an image, the last entry of which has `raft_index`; None where the disk refuses it.

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
        """Remove old snapshots, and the log below the oldest that stays; None where all stay. Blocks on the disk.

        Raises `OSError`.
        """
        remove_parts(self._directory)
        snapshots = list_snapshots(self._directory)
        stored = [self._stored(snapshot) for snapshot in snapshots]
        kept = None
        while may_go(stored, trimmed.size_bytes, self._policy, self._now_ms()):
            # The log first: at any time all that it lacks is in a snapshot.
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
