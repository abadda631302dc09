"""Long work in slices: what takes more than a moment is done piece by piece, and the loop serves others in between.

Owns the turns. Work is a generator that yields where it can be interrupted, after a few microseconds to a hundred, and
returns its result. It runs for `SLICE_S`; what is not done then waits behind the other work, and goes on in a later
turn of the loop, of which each has one slice. So a request of whatever size delays the answers to others by one slice,
and two large ones take turns. Must not know what the work is.
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
"""A slice ends with the first yield after so much time."""
FIRST_SLICE_S = 0.000_2
"""The first slice of work that comes while other work waits: most requests are done in it, however busy the loop is."""


class Watch(Protocol):
    """Notes how long work takes, of which a slice is a part."""

    def begin(self) -> None:
        """A slice begins; changes nothing where the work goes on already."""

    def pause(self) -> None:
        """The slice is over, where the work has not ended with it."""


WATCH: ContextVar[Watch | None] = ContextVar("WATCH", default=None)
"""What notes the time of the work that is begun now; None where nobody asks."""


class Slices:
    """The work in progress. Used from one event loop."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        # Each with its reply and its watch. Invariant: a turn is due exactly while it is not empty.
        self._waiting: deque[tuple[Sliced[Any], Reply, Watch | None]] = deque()

    def run(self, work: Sliced[Any]) -> Reply:
        """Do work; the reply is its result, set before this returns if one slice is enough.

        The first slice is done at once; it is short while other work waits.
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
        """Do a slice; return whether the work is done and its reply set."""
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
    """Do work at once, for those who know that it is short."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result


def each(change: Callable[[U], T], items: Iterable[U]) -> Sliced[list[T]]:
    """Make a value of each item."""
    made = []
    for item in items:
        made.append(change(item))
        yield
    return made
