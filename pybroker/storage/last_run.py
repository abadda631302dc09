"""What the last run wrote down in a log directory about the logs there, read once at a start.

Owns what stands for an offset that is not written down. Must not know where a log lies now.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pybroker.storage.checkpoint import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from pybroker.storage.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pybroker.storage.log_directory import LogDirectory

log = logging.getLogger("pybroker.storage")

Key = tuple[str, int]

_UNKNOWN = -1


class LastOffsets(NamedTuple):
    """What is known of one log; a recovery point of -1 is not known."""

    recovery_point: int = 0
    log_start: int = 0
    high_watermark: int = 0


class LastRun(NamedTuple):
    """What a directory's files say."""

    clean: bool
    recovery_points: Mapping[Key, int]
    log_starts: Mapping[Key, int]
    high_watermarks: Mapping[Key, int]
    unlisted_point: int  # what stands for a recovery point that is not there: 0, or -1 where the file was damaged

    def lists(self, key: Key) -> bool:
        """Tell whether the log was here when the checkpoints were written: each log has a recovery point."""
        return key in self.recovery_points

    def offsets_of(self, key: Key) -> LastOffsets:
        """Return what is known of a log."""
        return LastOffsets(
            self.recovery_points.get(key, self.unlisted_point),
            self.log_starts.get(key, 0),
            self.high_watermarks.get(key, 0),
        )


def read_last_run(directory: LogDirectory) -> LastRun:
    """Read a directory's files; from now on only a new clean stop counts as one. Raises OSError."""
    clean = directory.take_clean_shutdown()
    recovery_points = _read(directory.path / RECOVERY_POINTS)
    return LastRun(
        clean,
        recovery_points or {},
        _read(directory.path / LOG_STARTS) or {},
        _read(directory.path / HIGH_WATERMARKS) or {},
        _UNKNOWN if recovery_points is None else 0,
    )


def _read(path: Path) -> dict[Key, int] | None:
    # A checkpoint only saves work: without it a log is recovered from its beginning.
    try:
        return read_checkpoint(path)
    except CorruptCheckpointError as error:
        log.warning("%s; it is ignored", error)
        return None
