"""The open files of logs, limited by the process's file descriptors.

Owns when files of unused segments are closed, and the log message about exhausted descriptors or memory. A closed file
is opened again on its next use. Must not know how the limit is determined.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from pybroker.storage.exhaustion import limits
from pybroker.storage.native import close_idle_files

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pybroker.storage.partitions import Partitions

log = logging.getLogger("pybroker.storage")

_REPORT_EVERY_S = 60.0


class OpenFiles:
    """Keeps at most `most` files of segments open, not counting those that are being read or sent."""

    def __init__(self, partitions: Partitions, most: int, workers: Executor) -> None:
        self._partitions = partitions
        self._most = most
        self._workers = workers
        # None, or done, if no files are being closed because of exhausted descriptors or memory.
        self._giving_way: asyncio.Future[None] | None = None
        self._reported = -_REPORT_EVERY_S

    def close_idle(self) -> None:
        """Close files beyond the limit, first those that were not used since the last check. Blocks."""
        self._close(self._most)

    def step_exhausted(self, error: str) -> None:
        """Log that descriptors or memory are exhausted, and close unused files. Call it on the loop's thread."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._reported >= _REPORT_EVERY_S:
            self._reported = loop.time()
            log.error("Out of file descriptors or memory: %s; %s", error, limits())
        if self._giving_way is None or self._giving_way.done():
            self._giving_way = loop.run_in_executor(self._workers, self._close, self._most // 2)

    def _close(self, most: int) -> None:
        found, closed = close_idle_files(self._partitions.all(), most=most)
        if closed:
            log.debug("Closed %d of %d open segment files; the limit is %d", closed, found, most)
