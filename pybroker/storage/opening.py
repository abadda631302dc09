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
_MB = 1_000_000


class Lane:
    """The openings of one directory. As many threads as may work on it call `drain`."""

    def __init__(
        self,
        directory: Path | None,
        openings: Iterable[Callable[[], None]],
        *,
        to_recover: int = 0,
        recovered: Callable[[], int] | None = None,
    ) -> None:
        """`recovered` tells how many bytes of `to_recover` were read and checked; None: there is nothing to tell."""
        self._directory = directory
        self._waiting = deque(openings)
        self._to_recover = to_recover
        self._recovered = recovered
        self._begun = 0 if recovered is None else recovered()
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
            with self._lock:
                self._done += 1
            self.tell()

    def tell(self) -> None:
        """Say how far the recovery is, if that is news. Called by and by, as one log may take long."""
        if self._recovered is None:
            return
        with self._lock:
            read = min(self._recovered() - self._begun, self._to_recover)
            all_done = self._done == self._total
            percent = 100 if all_done else min(99, self._share(read))
            if percent == self._told_percent or (not all_done and percent < self._told_percent + _TELL_EVERY_PERCENT):
                return
            self._told_percent = percent
            log.info(
                "recovery of log directory %s: %d of %d MB, %d of %d partitions (%d %%)",
                self._directory,
                read // _MB,
                self._to_recover // _MB,
                self._done,
                self._total,
                percent,
            )

    def _share(self, read: int) -> int:
        """The percentage of the bytes, or of the partitions where there are none."""
        return read * 100 // self._to_recover if self._to_recover else self._done * 100 // self._total
