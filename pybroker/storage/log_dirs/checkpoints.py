"""The checkpoint files of log directories: rewritten when offsets have changed.

Owns which offsets each file contains, and that one thread at a time replaces a file. Must not know the directories of
partitions.
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
    """The checkpoints written in this run. Its methods block on the disk, and raise OSError."""

    def __init__(self) -> None:
        # Invariant: the contents of the files that this run has written.
        self._written: dict[Path, dict[Key, int]] = {}
        # Held while files are written, so that a file is only replaced by newer offsets.
        self._writing = threading.Lock()

    def write(self, directory: Path, here: Callable[[], Sequence[Partition]]) -> None:
        """Write recovery points, high watermarks and log start offsets of the partitions `here` in a directory."""
        with self._writing:
            partitions = here()
            self._write(directory / RECOVERY_POINTS, {(p.topic, p.index): p.recovery_point for p in partitions})
            self._write(directory / HIGH_WATERMARKS, {(p.topic, p.index): p.high_watermark for p in partitions})
        self.write_log_starts(directory, here)

    def write_log_starts(self, directory: Path, here: Callable[[], Sequence[Partition]]) -> None:
        """Write the log start offsets of the partitions `here` in a directory."""
        with self._writing:
            starts = {(p.topic, p.index): p.log_start_offset for p in here()}
            self._write(directory / LOG_STARTS, {key: offset for key, offset in starts.items() if offset > 0})

    def _write(self, path: Path, offsets: dict[Key, int]) -> None:
        if self._written.get(path) != offsets:
            write_checkpoint(path, offsets)
            self._written[path] = offsets
