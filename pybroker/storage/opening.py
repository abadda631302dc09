"""Opening many logs: each log directory by several threads of its own, with word of how far it is.

Owns how openings are shared among threads, and the lines that tell of a recovery. Must not know what an opening does.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

log = logging.getLogger("pybroker.storage")

_TELL_EVERY_PERCENT = 10


class Lane:
    """The openings of one directory. As many threads as may work on it call `drain`."""

    def __init__(self, directory: Path | None, openings: Iterable[Callable[[], None]], *, recovering: bool) -> None:
        """`recovering`: what is opened is read and checked first, which takes long enough to be told of."""
        self._directory = directory
        self._waiting = deque(openings)
        self._recovering = recovering
        self._lock = threading.Lock()
        self._total = len(self._waiting)
        self._done = 0
        self._told_percent = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def drain(self) -> None:
        """Open until nothing waits any more. An opening deals with its own failures."""
        while True:
            try:
                opening = self._waiting.popleft()
            except IndexError:
                return
            opening()
            if self._recovering:
                self._tell()

    def _tell(self) -> None:
        with self._lock:
            self._done += 1
            percent = self._done * 100 // self._total
            if percent < 100 and percent < self._told_percent + _TELL_EVERY_PERCENT:
                return
            self._told_percent = percent
            log.info(
                "recovery of log directory %s: %d of %d partitions (%d %%)",
                self._directory,
                self._done,
                self._total,
                percent,
            )
