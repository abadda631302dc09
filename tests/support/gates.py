"""A file whose reader blocks until a test releases it."""

from __future__ import annotations

import errno
import os
from pathlib import Path


class Gate:
    """A named pipe in place of a file of a log. A thread that opens the log blocks on it until `let_through`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pipe: int | None = None
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    def is_occupied(self) -> bool:
        """Return whether a reader is blocked on the pipe. Once true, it stays true until the pipe is closed."""
        if self._pipe is None:
            try:
                self._pipe = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # ENXIO: the pipe has no reader
                    raise
        return self._pipe is not None

    def let_through(self, content: bytes) -> None:
        """Release the blocked reader with this content."""
        assert self._pipe is not None
        os.write(self._pipe, content)
        self.close()

    def close(self) -> None:
        """Close the pipe, which releases a blocked reader."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)
