"""The checkpoint files of log directories: written where something has changed.

Owns which offsets stand in which file, and that a file is replaced by one thread at a time. Must not know which
partitions lie where.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pybroker.storage.log_dirs.checkpoint import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, write_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pybroker.storage.native import Partition

Key = tuple[str, int]


class Checkpoints:
    """What this run has written. Its methods block on the disk, and raise OSError."""

    def __init__(self) -> None:
        # Invariant: what the files hold, as far as this run has written them.
        self._written: dict[Path, dict[Key, int]] = {}
        # Held while files are written: a file is replaced by newer offsets only.
        self._writing = threading.Lock()

    def write(self, directory: Path, here: Callable[[], Sequence[Partition]]) -> None:
        """Write recovery points, high watermarks and log starts of what lies `here`, in a directory."""
        with self._writing:
            partitions = here()
            self._write(directory / RECOVERY_POINTS, {(p.topic, p.index): p.recovery_point for p in partitions})
            self._write(directory / HIGH_WATERMARKS, {(p.topic, p.index): p.high_watermark for p in partitions})
        self.write_log_starts(directory, here)

    def write_log_starts(self, directory: Path, here: Callable[[], Sequence[Partition]]) -> None:
        """Write the log starts of what lies `here`, in a directory."""
        with self._writing:
            starts = {(p.topic, p.index): p.log_start_offset for p in here()}
            self._write(directory / LOG_STARTS, {key: offset for key, offset in starts.items() if offset > 0})

    def _write(self, path: Path, offsets: dict[Key, int]) -> None:
        if self._written.get(path) != offsets:
            write_checkpoint(path, offsets)
            self._written[path] = offsets
