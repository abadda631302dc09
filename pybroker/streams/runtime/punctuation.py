"""Punctuators of one clock, in the order of their next times (`PunctuationQueue`)."""

from __future__ import annotations

from collections.abc import Callable

from pybroker.client.java.priority_queue import PriorityQueue
from pybroker.streams.processor import Cancellable


class Schedule(Cancellable):
    """A punctuator, the node that scheduled it, and its next time in milliseconds."""

    def __init__(self, node: str, next_ms: int, interval_ms: int, callback: Callable[[int], None]) -> None:
        self.node = node
        self.next_ms = next_ms
        self.interval_ms = interval_ms
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        """Stop the punctuator."""
        self.is_cancelled = True

    def advance(self, now_ms: int) -> None:
        """Move to the next time after now. Times that passed meanwhile are skipped."""
        self.next_ms += self.interval_ms
        if now_ms >= self.next_ms:
            missed = (now_ms - self.next_ms) // self.interval_ms + 1
            self.next_ms += missed * self.interval_ms


class PunctuationQueue:
    """The punctuators of one clock."""

    def __init__(self) -> None:
        self._queue: PriorityQueue[Schedule] = PriorityQueue(lambda schedule: schedule.next_ms)

    def add(self, schedule: Schedule) -> None:
        """Add a punctuator."""
        self._queue.offer(schedule)

    def run_due(self, now_ms: int, punctuate: Callable[[Schedule], None]) -> bool:
        """Call `punctuate` once for each due punctuator, and return whether one was due."""
        ran = False
        while (schedule := self._queue.peek()) is not None and schedule.next_ms <= now_ms:
            self._queue.poll()
            if schedule.is_cancelled:
                continue
            punctuate(schedule)
            ran = True
            # The callback can cancel its own schedule.
            if not schedule.is_cancelled:
                schedule.advance(now_ms)
                self._queue.offer(schedule)
        return ran
