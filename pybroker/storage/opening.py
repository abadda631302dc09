"""Opening of many logs: several threads for each log directory, with progress reports.

Owns the distribution of openings to threads, the log messages about recovery progress, and the count of remaining
recoveries. Must not know what an opening does. Logs are opened in groups: threads that take the interpreter's lock for
each log are no faster than one thread.
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
    """The remaining work of a recovery."""

    logs: int
    bytes: int
    """Size of the segments that are still to be read and checked."""


class OpeningQueue(Generic[T]):
    """The openings of one directory. Each thread that may open logs there calls `drain`."""

    def __init__(
        self,
        directory: Path | None,
        waiting: Iterable[tuple[T, int]],
        open_all: Callable[[list[T]], None],
        *,
        recovered: Callable[[], int] | None = None,
    ) -> None:
        """`waiting` are the openings, each with the bytes that it has to recover; `open_all` opens some of them.

        `recovered` returns the number of these bytes that have been read and checked; with None nothing is reported.
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
        """Open logs until the queue is empty. An opening handles its own failures."""
        while some := self._next():
            self._open_all(some)
            with self._lock:
                self._done += len(some)
            self.report()

    def _next(self) -> list[T]:
        """Take some openings: few if there are many bytes to recover, so that the threads finish at the same time."""
        some: list[T] = []
        size = 0
        with self._lock:
            while self._waiting and len(some) < _LOGS_AT_ONCE and size < _BYTES_AT_ONCE:
                opening, bytes_here = self._waiting.popleft()
                some.append(opening)
                size += bytes_here
        return some

    def report(self) -> None:
        """Log the progress of the recovery if it has changed. Called periodically, as one log may take long."""
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
        """The directory that this queue recovers, or None if it recovers nothing."""
        return None if self._recovered is None else self._directory

    @property
    def left(self) -> Left:
        """The remaining work of the recovery. Safe to read from any thread."""
        with self._lock:
            logs = self._total - self._done
        read = 0 if self._recovered is None else self._recovered() - self._begun
        return Left(logs, max(0, self._to_recover - read) if logs else 0)

    def _share(self, read: int) -> int:
        """Return the percentage of bytes read, or of partitions opened if there are no bytes to recover."""
        return read * 100 // self._to_recover if self._to_recover else self._done * 100 // self._total


class Recoveries:
    """The recoveries of this start, by log directory. Safe to read from any thread."""

    def __init__(self) -> None:
        self._queues: dict[Path, OpeningQueue[Any]] = {}

    def queue(self, queue: OpeningQueue[T]) -> OpeningQueue[T]:
        """Return the queue, after adding it to the recoveries if it recovers its directory."""
        if queue.recovers is not None:
            self._queues = {**self._queues, queue.recovers: queue}
        return queue

    def left(self) -> list[tuple[Path, Left]]:
        """Return the remaining work of each recovery, zero once it is complete."""
        return [(directory, queue.left) for directory, queue in self._queues.items()]
