"""The file with the id of a broker's process, from when it answers until it has ended.

A failed start must not overwrite another process's id, and a stop must not remove it. Locks on the log directories, not
this file, exclude a second broker. Must not know the readers of the file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pybroker.cli.errors import CommandError
from pybroker.storage.log_dirs.atomic_file import replace_file


class PidFile:
    """The file of one process."""

    def __init__(self, path: Path) -> None:
        """Raise CommandError where the file cannot be written, or contains the id of a running broker."""
        self._path = path.absolute()
        folder = self._path.parent
        if not folder.is_dir():
            raise CommandError(f"--pid-file {path}: there is no directory {folder}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise CommandError(f"--pid-file {path}: {folder} cannot be written to")
        other = self._read()
        if other is not None and other != os.getpid() and _is_broker(other):
            raise CommandError(
                f"--pid-file {path}: it has the id of a broker that runs, {other}; expected another file"
            )

    def write(self) -> None:
        """Write this process's id; raises CommandError."""
        try:
            replace_file(self._path, f"{os.getpid()}\n")
        except OSError as error:
            raise CommandError(f"--pid-file {self._path}: {error.strerror}") from None

    def remove(self) -> None:
        """Remove the file if it still has this process's id."""
        if self._read() == os.getpid():
            with suppress(OSError):
                self._path.unlink()

    def _read(self) -> int | None:
        """Return the id in the file; None where there is none."""
        try:
            return int(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None


def _is_broker(process: int) -> bool:
    """Whether the process is a broker by its command line: process ids are reused, above all after a boot."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return b"pybroker" in words and b"\0start\0" in words
