"""The time of a broker: what its sessions, its retention and its chores go by.

Owns reading the system's clocks and waiting by them. A test broker hands in a clock that can be set ahead
(`pybroker.testing.clock`). What bounds work in progress (a request, a commit, a stop) waits by the loop instead: it
must end however the broker's time is set.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_BEGAN_S = time.time() - time.monotonic()


class Cancellable(Protocol):
    """Work that is due later."""

    def cancel(self) -> None:
        """Do not do it; work that was done is left alone."""


class Clock:
    """The system's clocks. `wall_ms` may be called from any thread, the rest from the loop's."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970: what records and files are stamped with."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Return milliseconds since 1970 as of the start of the process: setting the system's clock moves it not."""
        return int((_BEGAN_S + time.monotonic()) * 1000)

    def call_later(self, delay_s: float, work: Callable[[], None]) -> Cancellable:
        """Do `work` on the running loop, `delay_s` seconds from now."""
        return asyncio.get_running_loop().call_later(delay_s, work)

    async def sleep(self, delay_s: float) -> None:
        """Wait `delay_s` seconds."""
        await asyncio.sleep(delay_s)


SYSTEM_CLOCK = Clock()
"""The clock of every broker that is not handed another."""
