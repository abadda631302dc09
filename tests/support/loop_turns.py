"""Counts event loop iterations during a request: sliced work lets other tasks run in between."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable
from typing import Any

from pybroker.machine.slices import SLICE_S, Slices


def short_slices(steps: int = 100) -> Slices:
    """Return slices that end after `steps` steps of the work, independent of time."""
    readings = itertools.count()
    return Slices(lambda: next(readings) * SLICE_S / steps)


async def turns_of(response: Awaitable[Any]) -> tuple[Any, int]:
    """Await a result. Returns it and the number of loop iterations in which other tasks ran meanwhile."""
    loop = asyncio.get_running_loop()
    turns, responded = -1, False

    def turn() -> None:
        nonlocal turns
        turns += 1
        if not responded:
            loop.call_soon(turn)

    turn()
    try:
        return await response, turns
    finally:
        responded = True
