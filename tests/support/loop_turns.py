"""The turns of the loop that an answer takes: work that is cut leaves others theirs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable
from typing import Any

from pybroker.machine.slices import SLICE_S, Slices


def short_slices(steps: int = 100) -> Slices:
    """Return slices that end after so many steps of the work, however long they take."""
    readings = itertools.count()
    return Slices(lambda: next(readings) * SLICE_S / steps)


async def turns_of(answer: Awaitable[Any]) -> tuple[Any, int]:
    """Await an answer; returns it, and in how many turns of the loop others had theirs meanwhile."""
    loop = asyncio.get_running_loop()
    turns, answered = -1, False

    def turn() -> None:
        nonlocal turns
        turns += 1
        if not answered:
            loop.call_soon(turn)

    turn()
    try:
        return await answer, turns
    finally:
        answered = True
