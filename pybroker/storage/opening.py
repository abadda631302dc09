"""Opening many logs: each log directory by several threads of its own, with word of how far it is.

Owns how openings are shared among threads, the lines that report a recovery, and what recoveries have left. Must not
know what an opening does. Logs are opened some at a time: threads that take turns at the interpreter for each log are
no faster than one.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

T = TypeVar("T")

log = logging.getLogger("pybroker.storage")

_REPORT_EVERY_PERCENT = 10
_MB = 1_000_000
_LOGS_AT_ONCE = 32
_BYTES_AT_ONCE = 16 * _MB


class Left(NamedTuple):
    """What a recovery has still to do."""

    logs: int
    bytes: int
    """Of segments that are to be read and checked."""


class OpeningQueue(Generic[T]):
    """The openings of one directory. As many threads as may work on it call `drain`."""

    def __init__(
        self,
        directory: Path | None,
        waiting: Iterable[tuple[T, int]],
        open_all: Callable[[list[T]], None],
        *,
        recovered: Callable[[], int] | None = None,
    ) -> None:
        """`waiting` are the openings, each with the bytes that it has to recover; `open_all` opens some of them.

        `recovered` returns how many of all those bytes were read and checked; None: there is nothing to report.
        """
        self._directory = directory
        self._waiting = deque(waiting)
        self._open_all = open_all
        self._to_recover = sum(size for _, size in self._waiting)
        self._recovered = recovered
        self._begun = 0 if recovered is None else recovered()
        self._lock = threading.Lock()
        self._total = len(self._waiting)
        self._done = 0
        self._reported_percent = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def drain(self) -> None:
        """Open until nothing waits any more. An opening deals with its own failures."""
        while some := self._next():
            self._open_all(some)
            with self._lock:
                self._done += len(some)
            self.report()

    def _next(self) -> list[T]:
        """Take some openings: few where there is much to recover, so that the last thread is not long alone."""
        some: list[T] = []
        size = 0
        with self._lock:
            while self._waiting and len(some) < _LOGS_AT_ONCE and size < _BYTES_AT_ONCE:
                opening, bytes_here = self._waiting.popleft()
                some.append(opening)
                size += bytes_here
        return some

    def report(self) -> None:
        """Say how far the recovery is, if that is news. Called by and by, as one log may take long."""
        if self._recovered is None:
            return
        with self._lock:
            read = min(self._recovered() - self._begun, self._to_recover)
            all_done = self._done == self._total
            percent = 100 if all_done else min(99, self._share(read))
            if percent == self._reported_percent or (
                not all_done and percent < self._reported_percent + _REPORT_EVERY_PERCENT
            ):
                return
            self._reported_percent = percent
            log.info(
                "recovery of log directory %s: %d of %d MB, %d of %d partitions (%d %%)",
                self._directory,
                read // _MB,
                self._to_recover // _MB,
                self._done,
                self._total,
                percent,
            )

    @property
    def recovers(self) -> Path | None:
        """The directory that is recovered by this, None where nothing is."""
        return None if self._recovered is None else self._directory

    @property
    def left(self) -> Left:
        """What the recovery has still to do; any thread may ask."""
        with self._lock:
            logs = self._total - self._done
        read = 0 if self._recovered is None else self._recovered() - self._begun
        return Left(logs, max(0, self._to_recover - read) if logs else 0)

    def _share(self, read: int) -> int:
        """The percentage of the bytes, or of the partitions where there are none."""
        return read * 100 // self._to_recover if self._to_recover else self._done * 100 // self._total


class Recoveries:
    """The recoveries of this start, by log directory; any thread may ask what they have left."""

    def __init__(self) -> None:
        self._queues: dict[Path, OpeningQueue[Any]] = {}

    def queue(self, queue: OpeningQueue[T]) -> OpeningQueue[T]:
        """Return the openings of a directory, and follow them where they recover it."""
        if queue.recovers is not None:
            self._queues = {**self._queues, queue.recovers: queue}
        return queue

    def left(self) -> list[tuple[Path, Left]]:
        """Return what each has left, nothing at its end."""
        return [(directory, queue.left) for directory, queue in self._queues.items()]
