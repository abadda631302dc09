"""The stream threads of one application. Their number changes while it runs (KIP-663)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from pybroker.streams.application.stream_thread import StreamThread


class StreamThreads:
    """Starts, removes and stops threads. Any thread may call every method."""

    def __init__(self, make: Callable[[int], StreamThread]) -> None:
        """`make` returns a new thread with a number."""
        self._make = make
        self._lock = threading.Lock()
        """Acquired to add a thread or to choose one for removal, so that numbers are unique."""
        self._threads: list[StreamThread] = []
        self.is_stopping = False
        """Whether no thread is added any more."""

    def all(self) -> list[StreamThread]:
        """Return the threads that have not ended, and those whose end is not handled yet."""
        return list(self._threads)

    def add(self) -> StreamThread | None:
        """Start a thread with the lowest free number. Returns None if the threads are stopping.

        Raises:
            ClientError: the clients of the thread cannot be opened.
        """
        with self._lock:
            if self.is_stopping:
                return None
            used = {thread.index for thread in self._threads if not thread.has_ended}
            thread = self._make(next(number for number in itertools.count(1) if number not in used))
            self._threads.append(thread)
            if self.is_stopping:
                thread.stop()
            thread.start()
            return thread

    def begin_removal(self) -> StreamThread | None:
        """Stop one thread, and return it, or None if there is none. The current thread is the last choice."""
        with self._lock:
            live = [thread for thread in self._threads if not thread.is_removed and not thread.has_ended]
            live.sort(key=lambda thread: thread.is_current)
            if self.is_stopping or not live:
                return None
            live[0].is_removed = True
            live[0].stop()
            return live[0]

    def take_ended(self) -> list[StreamThread]:
        """Return the threads that have ended since the last call."""
        ended = [thread for thread in self._threads if thread.has_ended]
        for thread in ended:
            self._threads.remove(thread)
        return ended

    def has_ended(self) -> bool:
        """Return whether a thread has ended, or all have and none follows."""
        threads = self.all()
        return any(thread.has_ended for thread in threads) or (self.is_stopping and not threads)

    def stop(self) -> None:
        """Stop all threads. None is added afterwards."""
        self.is_stopping = True
        for thread in self.all():
            thread.stop()

    def join(self) -> None:
        """Wait until all threads have ended."""
        for thread in self.all():
            thread.join(None)
        self._threads.clear()
