"""Reports to the controller on this broker's log directories: directories of partitions, and failed directories.

Owns the order of the reports: one at a time in the order of `add`, none before the broker is registered. A report that
must be delivered is retried until it is, or until its timeout. A report handles its own failures. Must not decide the
consequences.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Report = Callable[[], Awaitable[object]]

_AGAIN_S = 0.5
"""Pause before a report is retried, in seconds."""


class DirectoryReports:
    """A queue of reports to send. Used from the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Report] = deque()
        self._registered = False
        self._reporting: asyncio.Task[None] | None = None
        # Timers of reports that must be delivered. Invariant: empty after `stop`.
        self._later: set[asyncio.TimerHandle] = set()
        self._is_stopped = False

    def registered(self) -> None:
        """Start sending reports: the broker is registered."""
        self._registered = True
        self._begin()

    def add(self, report: Report) -> None:
        """Queue a report."""
        self._waiting.append(report)
        self._begin()

    def insist(self, report: Callable[[int], Awaitable[bool]], within_s: float, given_up: Callable[[], None]) -> None:
        """Send a report until it returns True (delivered), or call `given_up` after `within_s` seconds.

        `report` is called with the number of the attempt, from 1.
        """
        over = self._call_later(within_s, given_up)
        numbers = itertools.count(1)

        async def attempt() -> None:
            if await report(next(numbers)):
                self._forget(over)
            elif over in self._later and not self._is_stopped:
                self._call_later(_AGAIN_S, lambda: self.add(attempt))

        self.add(attempt)

    async def stop(self) -> None:
        """Send no further report, and wait for the one in flight."""
        self._is_stopped = True
        self._waiting.clear()
        while self._later:
            self._later.pop().cancel()
        if self._reporting is not None:
            await self._reporting

    def _call_later(self, after_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        def call() -> None:
            self._later.discard(handle)
            callback()

        handle = asyncio.get_running_loop().call_later(after_s, call)
        self._later.add(handle)
        return handle

    def _forget(self, handle: asyncio.TimerHandle) -> None:
        self._later.discard(handle)
        handle.cancel()

    def _begin(self) -> None:
        if self._registered and self._reporting is None and self._waiting:
            self._reporting = asyncio.ensure_future(self._report())

    async def _report(self) -> None:
        try:
            while self._waiting:
                await self._waiting.popleft()()
        finally:
            self._reporting = None
