"""The end of a run: closes logs, then writes the files that prove a clean shutdown.

Owns the order, and the choice of sync: of the whole file system if many logs have unsynced data. Must not know the
directories of partitions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.storage.native import FileSystem, close_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pybroker.storage.log_dirs.log_directory import LogDirectory
    from pybroker.storage.native import Partition

log = logging.getLogger("pybroker.storage")

_SHARED_FROM = 32
"""From this number of logs on, one sync of the file system is used, which also writes other programs' data. Fewer logs
sync their own files."""


class CleanStop:
    """Closes the logs in log directories."""

    def __init__(self) -> None:
        self._file_systems: dict[Path, FileSystem | None] = {}

    def begin(self, directory: Path) -> None:
        """Open the file system before any write, so that all later I/O errors are reported. Raises OSError."""
        self._file_systems[directory] = FileSystem.open(str(directory))

    def close(
        self,
        lying: Mapping[LogDirectory, Sequence[Partition]],
        threads: int,
        write_checkpoints: Callable[[LogDirectory], None],
        broker_epoch: int,
        *,
        clean: bool,
    ) -> None:
        """Flush and close every log; with `clean`, write checkpoints and clean-shutdown files.

        Each directory has its own `threads` threads. The clean-shutdown files are written last: they prove that all
        earlier writes succeeded. A directory that fails gets none, and is recovered at the next start.
        """
        failures: list[Exception] = []
        for directory, partitions in lying.items():
            closed = close_logs(
                partitions,
                file_system=self._file_systems.get(directory.path),
                shared_from=_SHARED_FROM,
                threads=threads,
            )
            failed = [error for error in closed if error is not None]
            directory.offline |= bool(failed)
            failures += failed
        for directory in lying:
            if directory.offline or not clean:
                continue
            try:
                write_checkpoints(directory)
                directory.write_clean_shutdown(broker_epoch)
            except OSError as error:
                failures.append(error)
        for failure in failures:
            log.error("Failed to close a log cleanly, so the next start recovers its directory: %s", failure)
