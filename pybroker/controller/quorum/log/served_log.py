"""The metadata log as its leader serves it to followers: its start offset, and the epoch before an offset.

Owns the comparison of a follower's log with this one (KIP-595): a follower sends an offset and the epoch of the batch
before it. Must not know requests, nor the leader.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pybroker.controller.quorum.snapshot.snapshots import list_snapshots

if TYPE_CHECKING:
    from pathlib import Path

    from pybroker.controller.quorum.log.metadata_log import MetadataLog
    from pybroker.controller.quorum.snapshot.snapshots import SnapshotId

NOTHING_BEFORE = -1
"""The epoch before the log's very first record."""
NO_SUCH_PLACE = -2
"""No batch ends at the offset: this epoch is not equal to any epoch of a follower."""
_HEAD = struct.Struct(">qiibIhi")
"""Base offset, length, leader epoch, format, checksum, attributes, offset of the last record from the base offset."""


class ServedLog:
    """A read-only view of one log, created on demand."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log

    @property
    def directory(self) -> Path:
        """The directory of the log's snapshots."""
        return self._log.directory

    @property
    def start_offset(self) -> int:
        """Offset of the first record that is in the log."""
        return self._log.start_offset

    def newest_snapshot(self) -> SnapshotId | None:
        """Return the newest snapshot, None if there is none."""
        snapshots = list_snapshots(self._log.directory)
        return snapshots[-1] if snapshots else None

    def epoch_before(self, offset: int, committed_offset: int) -> int | None:
        """Return the epoch of the batch that ends at an offset; None if the log starts after this batch.

        Returns `NOTHING_BEFORE` at offset 0, and `NO_SUCH_PLACE` within a batch and above the high watermark.
        """
        start = self.start_offset
        if offset > committed_offset:
            return NO_SUCH_PLACE
        if offset <= start:
            if offset == start == 0:
                return NOTHING_BEFORE
            epochs = [snapshot.epoch for snapshot in list_snapshots(self._log.directory) if snapshot[0] == offset]
            return epochs[-1] if epochs and offset == start else None
        base_offset, _, epoch, _, _, _, delta = _HEAD.unpack_from(self._log.read(offset - 1, 1))
        return epoch if base_offset + delta + 1 == offset else NO_SUCH_PLACE

    def end_of_epoch(self, epoch: int, committed_offset: int) -> tuple[int, int]:
        """Return the largest epoch of the log up to this one, and its end offset; the log start if there is none."""
        found, end_offset = self._log.end_offset_for_epoch(epoch)
        if end_offset < 0:
            return epoch, self.start_offset
        return found, min(end_offset, committed_offset)
