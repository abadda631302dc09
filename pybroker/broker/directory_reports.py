"""Reports to the controller on this broker's log directories: where partitions lie, and which directories failed.

Owns the order of the reports: one at a time, as they came up, none before the broker is registered. Must not decide
what follows from them. A report deals with its own failures.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Report = Callable[[], Awaitable[object]]


class DirectoryReports:
    """Reports that wait to be sent. Used from the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Report] = deque()
        self._registered = False
        self._reporting: asyncio.Task[None] | None = None

    def registered(self) -> None:
        """Begin to send reports: the controller knows this broker now."""
        self._registered = True
        self._begin()

    def add(self, report: Report) -> None:
        """Send this report after those that were added before."""
        self._waiting.append(report)
        self._begin()

    async def stop(self) -> None:
        """Send nothing more; wait for the report that is under way."""
        self._waiting.clear()
        if self._reporting is not None:
            await self._reporting

    def _begin(self) -> None:
        if self._registered and self._reporting is None and self._waiting:
            self._reporting = asyncio.ensure_future(self._report())

    async def _report(self) -> None:
        try:
            while self._waiting:
                await self._waiting.popleft()()
        finally:
            self._reporting = None
