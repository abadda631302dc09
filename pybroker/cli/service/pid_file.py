"""The file with the id of a broker's process, from when it answers until it has ended.

Owns that no other process's id is overwritten by a start that fails, nor removed by a stop: locks on the log
directories, not this file, keep two brokers apart. Must not know who reads it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.storage.atomic_file import replace_file

if TYPE_CHECKING:
    from pathlib import Path


class PidFile:
    """The file of one process."""

    def __init__(self, path: Path) -> None:
        """Raise CommandError where no file could be written."""
        self._path = path.absolute()
        folder = self._path.parent
        if not folder.is_dir():
            raise CommandError(f"--pid-file {path}: there is no directory {folder}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise CommandError(f"--pid-file {path}: {folder} cannot be written to")

    def write(self) -> None:
        """Write this process's id; raises CommandError."""
        try:
            replace_file(self._path, f"{os.getpid()}\n")
        except OSError as error:
            raise CommandError(f"--pid-file {self._path}: {error.strerror}") from None

    def remove(self) -> None:
        """Remove the file if it still has this process's id."""
        try:
            if self._path.read_text(encoding="ascii").strip() == str(os.getpid()):
                self._path.unlink()
        except (OSError, UnicodeDecodeError):
            return
