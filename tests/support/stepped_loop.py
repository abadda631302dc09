"""An event loop whose clock jumps to the next timer when it is idle: minutes of waiting take no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Response = TypeVar("Response")


class _Steps(selectors.SelectSelector):
    """A selector that polls without waiting, and advances the clock by the timeout instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and timeout is not None:
            self.now += timeout
        return found


class SteppedLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0. For code that waits for timers, and for sockets that are ready at once or never."""

    def __init__(self) -> None:
        self._steps = _Steps()
        super().__init__(self._steps)

    def time(self) -> float:
        return self._steps.now


def run_stepped(main: Coroutine[Any, Any, Response]) -> Response:
    """Run a coroutine on a stepped loop. Returns its result."""
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        return runner.run(main)
