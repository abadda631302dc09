"""Reports to the controller on this broker's log directories: where partitions lie, and which directories failed.

Owns the order of the reports: one at a time, as they came up, none before the broker is registered. A report that has
to arrive is sent again until it does, or until its time is over. Must not decide what follows from that. A report deals
with its own failures.
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
"""The pause before a report is sent again."""


class DirectoryReports:
    """Reports that wait to be sent. Used from the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Report] = deque()
        self._registered = False
        self._reporting: asyncio.Task[None] | None = None
        # Invariant: what is called later, for reports that have to arrive; nothing once this has stopped.
        self._later: set[asyncio.TimerHandle] = set()
        self._is_stopped = False

    def registered(self) -> None:
        """Begin to send reports: the controller knows this broker now."""
        self._registered = True
        self._begin()

    def add(self, report: Report) -> None:
        """Send this report after those that were added before."""
        self._waiting.append(report)
        self._begin()

    def insist(self, report: Callable[[int], Awaitable[bool]], within_s: float, given_up: Callable[[], None]) -> None:
        """Send this report until it returns that it has arrived; `given_up` is called once that takes too long.

        It is called with how many times it is sent, that time included.
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
        """Send nothing more; wait for the report that is under way."""
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
