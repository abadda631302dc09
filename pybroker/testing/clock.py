"""`SteppedClock`: the clock of one test broker, which runs with the system's clock and can be advanced.

Owns the offset from the system's clock, and the timers of this clock. Time never stops, so sessions and long polls
expire as with any broker.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from pybroker.machine.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.machine.clock import Cancellable


class SteppedClock(Clock):
    """The system's clocks plus an offset. Used from the broker's loop, except `wall_ms`."""

    def __init__(self) -> None:
        self._ahead_ms = 0
        # Pending timers of this clock.
        self._timers: set[_Timer] = set()
        # Tasks that `advance` woke from `sleep` and that have not called `sleep` again.
        self._awake: set[asyncio.Task[object]] = set()
        # Completed when `_awake` becomes empty; None while no `advance` waits for it.
        self._rested: asyncio.Future[None] | None = None

    @property
    def ahead_ms(self) -> int:
        """Return the offset from the system's clock."""
        return self._ahead_ms

    def wall_ms(self) -> int:
        """Return milliseconds since 1970 by this clock."""
        return super().wall_ms() + self._ahead_ms

    def steady_ms(self) -> int:
        """Return milliseconds since 1970 by this clock, unaffected by changes of the system's clock."""
        return super().steady_ms() + self._ahead_ms

    def call_later(self, delay_s: float, work: Callable[[], None]) -> Cancellable:
        """Call `work` when the clock has advanced by `delay_s` seconds."""
        timer = _Timer(self._timers, self.steady_ms() + delay_s * 1000, work)
        timer.arm(delay_s)
        return timer

    async def sleep(self, delay_s: float) -> None:
        """Wait until the clock has advanced by `delay_s` seconds."""
        # No local variable refers to the task, whose exception refers to this frame: that would be a cycle.
        self._rest(asyncio.current_task())
        slept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(delay_s, partial(_end, slept))
        before = self._ahead_ms
        try:
            await slept
        finally:
            timer.cancel()
        if self._ahead_ms != before:
            self._wake(asyncio.current_task())

    def set_back(self) -> None:
        """Reset the offset to 0. Called while no timer is pending."""
        self._ahead_ms = 0
        self._timers.clear()
        self._awake.clear()

    async def advance(self, by_ms: int) -> None:
        """Advance the clock, run the due timers in order, and wait until their background tasks are done."""
        self._ahead_ms += by_ms
        now = self.steady_ms()
        for timer in sorted(self._timers, key=lambda timer: timer.due_ms):
            timer.step(now)
        # Three loop iterations: the futures of sleepers complete, the sleepers run, the tasks that they start begin.
        for _ in range(3):
            await asyncio.sleep(0)
        if self._awake:
            self._rested = asyncio.get_running_loop().create_future()
            await self._rested

    def _wake(self, task: asyncio.Task[object] | None) -> None:
        if task is not None:
            self._awake.add(task)
            task.add_done_callback(self._rest)

    def _rest(self, task: asyncio.Task[object] | None) -> None:
        if task is not None:
            self._awake.discard(task)
        if not self._awake and self._rested is not None:
            rested, self._rested = self._rested, None
            if not rested.done():
                rested.set_result(None)


def _end(slept: asyncio.Future[None]) -> None:
    if not slept.done():
        slept.set_result(None)


class _Timer:
    """A callback at a time of a stepped clock."""

    def __init__(self, timers: set[_Timer], due_ms: float, work: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self._timers = timers
        self._work = work
        self._handle: asyncio.TimerHandle | None = None
        timers.add(self)

    def arm(self, delay_s: float) -> None:
        self._handle = asyncio.get_running_loop().call_later(max(0.0, delay_s), self._fire)

    def step(self, now_ms: float) -> None:
        """Fire, or wait for the remaining time."""
        if self not in self._timers:
            return  # Another timer that was due has cancelled this one.
        if self._handle is not None:
            self._handle.cancel()
        if self.due_ms <= now_ms:
            self._fire()
        else:
            self.arm((self.due_ms - now_ms) / 1000)

    def cancel(self) -> None:
        """Cancel the callback."""
        self._timers.discard(self)
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self.cancel()
        self._work()


def milliseconds(by: timedelta | float) -> int:
    """Return a step of time in ms, from a `timedelta` or seconds. Raises ValueError for a negative one."""
    step_ms = round((by.total_seconds() if isinstance(by, timedelta) else by) * 1000)
    if step_ms < 0:
        raise ValueError(f"advance({by!r}): a broker's clock cannot move backwards; pass 0 seconds or more")
    return step_ms
