"""The checkpoints and files that the last run wrote in a log directory, read once at a start.

Owns the default of a missing offset, and the search for the entry of a log that was moved. Must not know the current
directories of logs: callers pass them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from pybroker.storage.errors import CorruptCheckpointError
from pybroker.storage.log_dirs.checkpoint import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from pybroker.storage.native import move_count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pybroker.storage.log_dirs.log_directory import LogDirectory

log = logging.getLogger("pybroker.storage")

Key = tuple[str, int]

_UNKNOWN = -1


class LastOffsets(msgspec.Struct, frozen=True):
    """The stored offsets of one log; a recovery point or a log start of -1 is unknown."""

    recovery_point: int = 0
    log_start: int = 0
    high_watermark: int = 0


class LastRun(msgspec.Struct, frozen=True):
    """The contents of a directory's files."""

    clean: bool
    recovery_points: Mapping[Key, int]
    log_starts: Mapping[Key, int]
    high_watermarks: Mapping[Key, int]
    unlisted_point: int  # default of a missing recovery point: 0, or -1 if the file was damaged
    unlisted_start: int  # default of a missing log start offset

    def lists(self, key: Key) -> bool:
        """Return whether the log was here when the checkpoints were written: each log has a recovery point."""
        return key in self.recovery_points

    def offsets_of(self, key: Key) -> LastOffsets:
        """Return the stored offsets of a log."""
        return LastOffsets(
            self.recovery_points.get(key, self.unlisted_point),
            self.log_starts.get(key, self.unlisted_start),
            self.high_watermarks.get(key, 0),
        )


class LastRuns:
    """The stored state of the last run in every directory."""

    def __init__(self) -> None:
        self._runs: dict[Path, LastRun] = {}

    def read(self, directory: LogDirectory) -> None:
        """Read a directory's files. Removes its clean-shutdown file. Raises OSError."""
        self._runs[directory.path] = _read_last_run(directory)

    def clean(self, path: Path) -> bool:
        """Return whether the last run has shut down cleanly in a directory."""
        return self._runs[path].clean

    def listed_offsets(self, key: Key, path: Path) -> LastOffsets:
        """Return the offsets of a log in a directory's own files."""
        return self._runs[path].offsets_of(key)

    def offsets_of(self, key: Key, path: Path) -> LastOffsets:
        """Return the offsets of the log that is now in a directory; raises OSError and ValueError."""
        own = self._runs[path]
        if not own.lists(key) and move_count(str(path / f"{key[0]}-{key[1]}")) > 0:
            # It was moved at the end of the last run, and only its source directory's checkpoint lists it.
            for other in self._runs.values():
                if other.lists(key):
                    return other.offsets_of(key)
        return own.offsets_of(key)

    def offsets_where_missing(self, key: Key) -> LastOffsets:
        """Return the stored offsets of a log whose directory is missing; default offsets for a new log."""
        listed = (run.offsets_of(key) for run in self._runs.values() if run.lists(key) or key in run.high_watermarks)
        return next(listed, LastOffsets())


def _read_last_run(directory: LogDirectory) -> LastRun:
    clean = directory.take_clean_shutdown()
    recovery_points = _read(directory.path / RECOVERY_POINTS, clean)
    log_starts = _read(directory.path / LOG_STARTS, clean)
    return LastRun(
        clean,
        recovery_points or {},
        log_starts or {},
        _read(directory.path / HIGH_WATERMARKS, clean) or {},
        _UNKNOWN if recovery_points is None else 0,
        _UNKNOWN if log_starts is None else 0,
    )


def _read(path: Path, clean: bool) -> dict[Key, int] | None:
    """Return the contents of a checkpoint, None if they are unknown."""
    if clean and not path.exists():
        log.warning("checkpoint file %s is missing, although the last stop was clean", path)
        return None
    # A checkpoint only saves work: without it a log is recovered from its beginning.
    try:
        return read_checkpoint(path)
    except CorruptCheckpointError as error:
        log.warning("%s; ignoring the file", error)
        return None
