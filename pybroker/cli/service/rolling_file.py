"""A file of the log that is rolled by its size, and opened anew when somebody has moved it.

Must not know the content.
"""

from __future__ import annotations

from logging.handlers import RotatingFileHandler


class RollingFile(RotatingFileHandler):
    """A file that is renamed to FILE.1 when it would grow over a size, FILE.1 to FILE.2, and so on."""

    def reopen(self) -> None:
        """Write the next line to a file with the original name, after another program has renamed this one."""
        self.acquire()
        try:
            if self.stream is not None:
                self.stream.close()
                self.stream = None  # emit opens the file again
        finally:
            self.release()
