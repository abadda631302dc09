"""The copy of the metadata log on the disk of an observer: committed batches, and snapshots.

Owns `__cluster_metadata-0` of an observer: its content at a start, its appends, and the replacement of a copy that is
damaged or of another quorum. The first replaced copy is renamed and kept, later ones are removed. The log is then
fetched again, so no write waits for a sync. Must not know the leader. The methods block on the disk, and one runs at a
time.
"""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.errors import ControllerError, MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.native import Log, parse_metadata_batches
from pybroker.controller.quorum.snapshot.snapshot_header import UNKNOWN
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot, read_image, remove_parts
from pybroker.controller.quorum.voters.control_records import kraft_versions
from pybroker.metadata.errors import MetadataError
from pybroker.metadata.loader import Loader
from pybroker.protocol.errors import ProtocolError
from pybroker.protocol.messages.records.frame import decode_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pybroker.controller.quorum.snapshot.snapshots import SnapshotFile
    from pybroker.metadata.image import MetadataImage

log = logging.getLogger("pybroker.controller")

_READ_BYTES = 1 << 20
_INDEX_BYTES = 1 << 16
_INDEX_INTERVAL_BYTES = 4096


class Restored(msgspec.Struct, frozen=True):
    """The content of a restored copy."""

    loader: Loader
    """Contains the metadata of the whole copy; nothing is published yet."""
    end_offset: int
    epoch: int
    """Leader epoch of the last batch, -1 before the first."""
    raft_index: int
    """Raft index of the last entry, -1 if it is unknown."""


class MetadataCopy:
    """The metadata log and snapshots of one observer, on its disk."""

    def __init__(self, parent: Path, segment_bytes: int, segment_ms: int, now_ms: Callable[[], int]) -> None:
        """`parent` is the parent directory of the copy; nothing is opened before `restore`."""
        self.directory = parent / DIRECTORY_NAME
        self._segment_bytes, self._segment_ms = segment_bytes, segment_ms
        self._now_ms = now_ms
        self._log: Log | None = None

    @property
    def size_bytes(self) -> int:
        """Size of the log's segments in bytes."""
        return self._opened().size_bytes

    def advance_start(self, offset: int) -> list[Path]:
        """Advance the log start offset, and return the files of the deleted segments."""
        return self._opened().advance_start(offset)

    def restore(self) -> Restored:
        """Open or create the copy, and load it; a damaged copy is set aside. Raises `OSError`."""
        self.close()
        try:
            return self._restore()
        except (ControllerError, MetadataError, ProtocolError, ValueError) as error:
            self.set_aside(str(error))
            return self._restore()

    def set_aside(self, reason: str) -> None:
        """Rename the copy, or remove it if an earlier one was renamed; `restore` creates another. Raises `OSError`."""
        self.close()
        aside = self.directory.with_name(f"{DIRECTORY_NAME}.aside")
        if aside.exists():
            shutil.rmtree(self.directory)
            what = f"{aside} exists from an earlier failure, so the copy is removed"
        else:
            self.directory.rename(aside)
            what = f"the copy is kept as {aside}"
        log.error("This node's copy of the metadata log cannot be used: %s; %s. Fetching the log again", reason, what)

    def append(self, batches: bytes) -> None:
        """Append committed batches; raises `OSError`, and `ValueError` if they do not follow the last batch."""
        self._opened().append_as_follower(batches, self._now_ms())

    def install(self, path: Path) -> MetadataImage:
        """Restart the log after a fetched snapshot, and return the snapshot's image.

        Raises `OSError` and `MetadataLogError`; nothing has changed then.
        """
        image = read_image(path)
        self._opened().restart_at(image.offset + 1, self._now_ms())
        return image

    def close(self) -> None:
        """Close the log; raises `OSError`."""
        opened, self._log = self._log, None
        if opened is not None:
            opened.close()

    def _opened(self) -> Log:
        if self._log is None:
            raise ValueError(f"{self.directory} is not open")
        return self._log

    def _restore(self) -> Restored:
        self.directory.mkdir(parents=True, exist_ok=True)
        remove_parts(self.directory)
        snapshot = newest_snapshot(self.directory)
        self._log = Log.open(
            directory=str(self.directory),
            segment_bytes=self._segment_bytes,
            segment_ms=self._segment_ms,
            segment_index_bytes=_INDEX_BYTES,
            index_interval_bytes=_INDEX_INTERVAL_BYTES,
            now_ms=self._now_ms(),
        )
        loader, epoch, index, end_offset = Loader(), -1, 0, 0
        if snapshot is not None:
            loader.replace(read_image(snapshot.path))
            epoch, index, end_offset = snapshot.epoch, snapshot.raft_index, snapshot.end_offset
        self._align(snapshot, end_offset)
        offset = max(self._log.log_start_offset, 0)
        while offset < self._log.log_end_offset:
            raw = self._log.read(offset, _READ_BYTES)
            batches, _ = parse_metadata_batches(raw)
            levels = kraft_versions(raw)
            for base_offset, last_offset, batch_epoch, _, is_control, values in batches:
                if base_offset != offset:
                    raise MetadataLogError(f"{self.directory}: offset {offset} is missing before {base_offset}")
                offset = last_offset + 1
                if last_offset < end_offset:
                    continue
                if base_offset < end_offset or batch_epoch < epoch:
                    raise MetadataLogError(f"{self.directory}: the batch at offset {base_offset} is of another log")
                loader.load(() if is_control else map(decode_record, values), last_offset, batch_epoch)
                if last_offset in levels:
                    loader.note_kraft_version(levels[last_offset])
                epoch, end_offset = batch_epoch, offset
                index += index != UNKNOWN
        return Restored(loader, end_offset, epoch, index)

    def _align(self, snapshot: SnapshotFile | None, end_offset: int) -> None:
        """Make the log begin at the snapshot's end, or at offset 0. Raises MetadataLogError if it begins later."""
        opened = self._opened()
        if snapshot is not None and opened.log_end_offset < end_offset:
            # The snapshot was fetched, and the process ended before the log was restarted after it.
            opened.restart_at(end_offset, self._now_ms())
        if opened.log_start_offset > end_offset:
            raise MetadataLogError(
                f"{self.directory}: the log begins at offset {opened.log_start_offset}, and no snapshot "
                "contains the records before it"
            )
