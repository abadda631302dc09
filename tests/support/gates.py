"""A file whose reader stands still until a test lets it go on."""

from __future__ import annotations

import errno
import os
from pathlib import Path


class Gate:
    """A file of a log, read when the log is opened, as a pipe: who opens it stands there until it is let through."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pipe: int | None = None
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    def is_occupied(self) -> bool:
        """Return whether a reader stands at it; a reader that was seen once stays."""
        if self._pipe is None:
            try:
                self._pipe = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # which is a pipe that nobody reads
                    raise
        return self._pipe is not None

    def let_through(self, content: bytes) -> None:
        """Give who stands there what it reads."""
        assert self._pipe is not None
        os.write(self._pipe, content)
        self.close()

    def close(self) -> None:
        """Stop to hold anybody."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)
