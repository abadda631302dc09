"""The end of a run: logs are closed, and what vouches for that is written last.

Owns the order, and what the device is waited for by: the file system as a whole where many logs have something to be
synced. Must not know which partitions lie where.
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
"""So many logs wait for one sync of their file system, which also waits for what others have written there; of fewer
each waits for its own files."""


class CleanStop:
    """Closes what lies in log directories."""

    def __init__(self) -> None:
        self._file_systems: dict[Path, FileSystem | None] = {}

    def begin(self, directory: Path) -> None:
        """Open a directory before anything is written there: what is lost from now on is reported. Raises OSError."""
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
        """Flush and close every log; if all was `clean`, write checkpoints and clean-shutdown files.

        Each directory is dealt with by so many `threads`. The clean-shutdown files come last: they vouch for all that
        is written before them. A directory that fails now gets none, and is recovered at the next start.
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
            log.error("a log could not be closed cleanly, the next start recovers its directory: %s", failure)
