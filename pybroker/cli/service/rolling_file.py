"""A file of the log that is rolled by its size, and opened anew when somebody has moved it.

Owns both. Must not know what is written.
"""

from __future__ import annotations

from logging.handlers import RotatingFileHandler


class RollingFile(RotatingFileHandler):
    """A file that is renamed to FILE.1 when it would grow over a size, FILE.1 to FILE.2, and so on."""

    def reopen(self) -> None:
        """Write the next line into the file of that name, which somebody may have renamed."""
        self.acquire()
        try:
            if self.stream is not None:
                self.stream.close()
                self.stream = None  # emit opens it again
        finally:
            self.release()
