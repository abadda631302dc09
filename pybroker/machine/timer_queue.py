"""The timers of one machine, which share one timer of the event loop.

Owns the order of deadlines. Must not know the events of timers. Postponing a timer costs two assignments: most timers
are session timeouts, which each heartbeat postpones and which rarely expire.

A deadline is a time of the machine's clock. If that clock can be set, the remaining time is measured by a steady clock:
setting the time of day neither expires sessions nor postpones timers.
"""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pybroker.machine.clock import Cancellable
    from pybroker.machine.machine import Timer


_FEW = 64
"""Heap entries of cancelled timers that are kept before a cleanup is considered."""


class TimerQueue:
    """Timers by key. Expired timers are passed to `ring`, earliest first."""

    def __init__(
        self,
        now: Callable[[], int],
        ring: Callable[[Sequence[Timer]], None],
        call_later: Callable[[float, Callable[[], None]], Cancellable] | None = None,
        steady: Callable[[], int] | None = None,
    ) -> None:
        """`now` is the machine's clock in milliseconds, `steady` a clock that is never set (None: `now`)."""
        self._now = now
        self._steady = steady or now
        self._ring = ring
        self._call_later = call_later
        self._timers: dict[Hashable, Timer] = {}
        # The deadlines of these timers on the steady clock, as all times below.
        self._deadlines: dict[Hashable, int] = {}
        # The earliest time at which each key has a heap entry. Invariant: not after the deadline of the key's timer.
        self._scheduled: dict[Hashable, int] = {}
        # (time, ordinal, key); an entry that differs from `_scheduled` is ignored.
        self._heap: list[tuple[int, int, Hashable]] = []
        self._ordinal = 0
        # Invariant: set for the first entry or earlier, None without timers.
        self._handle: Cancellable | None = None
        self._rings_at = 0

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def kept(self) -> int:
        """Return the number of heap entries: one for each timer, and those of cancelled timers."""
        return len(self._heap)

    def set(self, timer: Timer) -> None:
        """Set a timer, or cancel the timer of its key if it has no deadline.

        Replaces an earlier timer of the same key.
        """
        key, deadline = timer.key, timer.deadline_ms
        if timer.if_absent and key in self._timers:
            return
        if deadline is None:
            if self._timers.pop(key, None) is not None:
                del self._deadlines[key]
                self._maybe_forget()
            return
        if self._steady is not self._now:
            deadline += self._steady() - self._now()
        self._timers[key] = timer
        self._deadlines[key] = deadline
        scheduled = self._scheduled.get(key)
        if scheduled is None or deadline < scheduled:
            self._schedule(key, deadline)
            if self._handle is None or deadline < self._rings_at:
                self._arm()

    def clear(self) -> None:
        """Drop every timer."""
        self._timers.clear()
        self._deadlines.clear()
        self._scheduled.clear()
        self._heap.clear()
        self._arm()

    def _maybe_forget(self) -> None:
        """Drop the entries of cancelled timers when they are the majority: their deadlines may be hours away."""
        if not self._timers:
            self.clear()
        elif len(self._heap) > 2 * len(self._timers) + _FEW:
            self._scheduled = {key: at for key, at in self._scheduled.items() if key in self._timers}
            self._heap = [(at, ordinal, key) for at, ordinal, key in self._heap if self._scheduled.get(key) == at]
            heapify(self._heap)

    def _schedule(self, key: Hashable, at: int) -> None:
        self._scheduled[key] = at
        self._ordinal += 1
        heappush(self._heap, (at, self._ordinal, key))

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._heap:
            self._rings_at = self._heap[0][0]
            call_later = self._call_later or asyncio.get_running_loop().call_later
            self._handle = call_later(max(0, self._rings_at - self._steady()) / 1000, self._fire)

    def _fire(self) -> None:
        now = self._steady()
        due: list[Timer] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heappop(self._heap)
            if self._scheduled.get(key) != at:
                continue
            del self._scheduled[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue  # The timer was cancelled.
            if deadline <= now:
                del self._deadlines[key]
                due.append(self._timers.pop(key))
            else:
                self._schedule(key, deadline)
        self._handle = None
        self._arm()
        self._ring(due)
