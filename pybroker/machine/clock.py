"""The clock of a broker: used by sessions, retention and background tasks.

Owns reading the system's clocks and waiting by them. A test broker uses a clock that can be advanced
(`pybroker.testing.clock`). Timeouts of work in progress (a request, a commit, a shutdown) use the event loop's clock
instead, so they expire independently of the broker's clock.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_BEGAN_S = time.time() - time.monotonic()


class Cancellable(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Cancel the callback. Does nothing if it has already run."""


class Clock:
    """The system's clocks. `wall_ms` may be called from any thread, the rest from the loop's."""

    def wall_ms(self) -> int:
        """Return the time of day in milliseconds since 1970, used for the timestamps of records and files."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Return the start of the process in milliseconds since 1970, plus the elapsed monotonic time.

        Setting the system's clock does not change it.
        """
        return int((_BEGAN_S + time.monotonic()) * 1000)

    def call_later(self, delay_s: float, work: Callable[[], None]) -> Cancellable:
        """Call `work` on the running loop in `delay_s` seconds."""
        return asyncio.get_running_loop().call_later(delay_s, work)

    async def sleep(self, delay_s: float) -> None:
        """Wait `delay_s` seconds."""
        await asyncio.sleep(delay_s)


SYSTEM_CLOCK = Clock()
"""The default clock of a broker."""
