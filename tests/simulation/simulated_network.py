"""The network between simulated processes: messages are late, lost and out of order; ways are cut in one direction.

Owns who reaches whom. Must not know what is carried. A message arrives in the life of who receives it, or nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any, Protocol

from tests.simulation.simulated_loop import Life, SimulatedLoop

LONGEST_DELAY_S = 0.3
"""No message is under way for longer."""


NOBODY = Context()
"""What is under way outlives who sent it."""


class LostError(Exception):
    """No answer came in time."""


class Process(Protocol):
    """Who is reached by a number."""

    life: Life | None


class Network:
    """All ways between processes."""

    def __init__(self, loop: SimulatedLoop, random: Random) -> None:
        self._loop, self._random = loop, random
        self.processes: dict[int, Process] = {}
        # Directed: what the first sends to the second is lost.
        self.cut: set[tuple[int, int]] = set()
        self.loss = 0.0
        self.delivered = 0

    def reaches(self, one: int, other: int) -> bool:
        """Whether both can send to each other, and both live."""
        return (
            (one, other) not in self.cut
            and (other, one) not in self.cut
            and all(self.processes[number].life is not None for number in (one, other))
        )

    def send(self, one: int, other: int, deliver: Callable[..., object], *arguments: Any) -> None:
        """Have `deliver` called where `other` lives then, or not at all."""
        if self._random.random() < self.loss or (one, other) in self.cut:
            return
        self._loop.call_later(self.delay(), self._arrive, one, other, deliver, arguments, context=NOBODY)

    def delay(self) -> float:
        """How long a message is under way: mostly a moment."""
        quick = self._random.random() < 0.95
        return self._random.uniform(0.0005, 0.003) if quick else self._random.uniform(0.003, LONGEST_DELAY_S)

    async def call(
        self, one: int, other: int, handler: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any, within: float
    ) -> Any:
        """Have `other` do something and answer; raises `LostError`, and what `handler` raised there."""
        response: asyncio.Future[Any] = self._loop.create_future()

        async def serve() -> None:
            try:
                done, error = await handler(*arguments), None
            except Exception as raised:  # noqa: BLE001 - it goes to the caller
                done, error = None, raised
            self.send(other, one, take, done, error)

        def take(done: Any, error: Exception | None) -> None:
            if response.done():
                return
            if error is not None:
                response.set_exception(error)
            else:
                response.set_result(done)

        def begin() -> None:
            asyncio.ensure_future(serve())  # noqa: RUF006 - the life keeps its tasks

        self.send(one, other, begin)
        timer = self._loop.call_later(within, take, None, LostError())
        try:
            return await response
        finally:
            timer.cancel()

    def _arrive(self, one: int, other: int, deliver: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        life = self.processes[other].life
        if life is not None and (one, other) not in self.cut:
            self.delivered += 1
            self._loop.call_soon(deliver, *arguments, context=life.context)
