"""Long work in time slices: the event loop serves other requests between the slices.

Owns the round-robin of slices. Work is a generator that yields every few to a hundred microseconds, where it can be
interrupted, and returns its result. It runs for `SLICE_S`. Unfinished work is queued behind the other work and
continues in a later iteration of the loop; each iteration runs one slice. So a request of any size delays other
responses by one slice. Must not know the work.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from pybroker.machine.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

T = TypeVar("T")
U = TypeVar("U")
Sliced: TypeAlias = "Generator[None, None, T]"
"""Work that yields where it can be interrupted, and returns a `T`."""

SLICE_S = 0.002
"""Length of a slice in seconds: it ends with the first yield after this time."""
FIRST_SLICE_S = 0.000_2
"""Length in seconds of the first slice of work while other work is queued. Most requests complete in it."""


class Watch(Protocol):
    """Measures the time of work that runs in slices."""

    def begin(self) -> None:
        """Start timing: a slice of the work begins. Does nothing if the work is already timed."""

    def pause(self) -> None:
        """Stop timing: the slice of the work ends. Does nothing if the work has ended."""


WATCH: ContextVar[Watch | None] = ContextVar("WATCH", default=None)
"""The watch of work that starts in this context; None if its time is not measured."""


class Slices:
    """The work in progress. Used from one event loop."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        # Unfinished work with its reply and watch. Invariant: `_turn` is scheduled exactly while it is not empty.
        self._waiting: deque[tuple[Sliced[Any], Reply, Watch | None]] = deque()

    def run(self, work: Sliced[Any]) -> Reply:
        """Start work and return the reply with its result, already set if one slice is enough.

        The first slice runs at once. It is shorter if other work is queued.
        """
        reply = Reply(in_slices=True)
        is_busy = bool(self._waiting)
        if not self._step(work, reply, FIRST_SLICE_S if is_busy else SLICE_S):
            self._waiting.append((work, reply, WATCH.get()))
            if not is_busy:
                asyncio.get_running_loop().call_soon(self._turn)
        return reply

    def _turn(self) -> None:
        work, reply, watch = self._waiting.popleft()
        if watch is not None:
            watch.begin()
        try:
            if not self._step(work, reply, SLICE_S):
                self._waiting.append((work, reply, watch))
        finally:
            if watch is not None:
                watch.pause()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._turn)

    def _step(self, work: Sliced[Any], reply: Reply, slice_s: float) -> bool:
        """Run one slice. Return whether the work is done and its reply set."""
        clock = self._clock
        end = clock() + slice_s
        try:
            while True:
                next(work)
                if clock() >= end:
                    return False
        except StopIteration as done:
            reply(done.value, None)
        except Exception as error:  # noqa: BLE001 - it becomes the reply
            reply(None, error)
        return True


def whole(work: Sliced[T]) -> T:
    """Run work to its end and return its result. For short work only."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result


def each(change: Callable[[U], T], items: Iterable[U]) -> Sliced[list[T]]:
    """Return `change` of each item, as work that yields after each."""
    made = []
    for item in items:
        made.append(change(item))
        yield
    return made
