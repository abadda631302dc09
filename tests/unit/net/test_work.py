"""The time that the control plane spends on a request, with what its handler leaves for later and without its waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pybroker.machine.reply import Reply
from pybroker.machine.slices import WATCH, Slices
from pybroker.net.work import handle
from pybroker.security.quotas import RequestTime


class Clock:
    """Stands still but for the work that is played."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Api:
    """An API whose handler is the test's."""

    def __init__(self, handler: Any) -> None:
        self.api = self
        self.handle = lambda _request, context: handler(context)


class Context:
    def __init__(self, clock: Clock | None) -> None:
        self.time = None if clock is None else RequestTime(lambda nanoseconds: nanoseconds, clock)
        if self.time is not None:
            self.time.begin()


async def test_a_handler_that_waits_is_counted_for_what_it_does_in_between() -> None:
    clock, reached, gate = Clock(), asyncio.Event(), asyncio.Event()

    async def handler(_context: Context) -> str:
        clock.now += 3
        reached.set()
        await gate.wait()
        clock.now += 4
        with pytest.raises(TimeoutError):
            await lost()
        return "done"

    async def lost() -> None:
        clock.now += 5
        await asyncio.wait_for(asyncio.Event().wait(), 0.001)

    context: Any = Context(clock)
    task = asyncio.ensure_future(handle(Api(handler), None, context))  # type: ignore[arg-type]
    await reached.wait()
    clock.now += 1000
    gate.set()
    assert await task == "done"
    assert context.time.finish() == 12


async def test_a_handler_that_is_cancelled_while_it_waits_ends() -> None:
    ended, reached = [], asyncio.Event()

    async def handler(_context: Context) -> None:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.ensure_future(handle(Api(handler), None, Context(Clock())))  # type: ignore[arg-type]
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_slices_that_are_done_later_are_counted() -> None:
    clock, seconds = Clock(), iter(range(100))
    slices = Slices(lambda: float(next(seconds)))

    def work() -> Any:
        for _ in range(3):
            clock.now += 7
            yield
        return "done"

    context: Any = Context(clock)
    reply = handle(Api(lambda _context: slices.run(work())), None, context)  # type: ignore[arg-type]
    assert type(reply) is Reply
    assert not reply.is_set, "each slice is one step"
    clock.now += 1000
    assert await reply == "done"
    clock.now += 1000
    assert context.time.finish() == 21
    assert WATCH.get() is None


def test_without_a_quota_nothing_is_noted() -> None:
    context: Any = Context(None)
    assert handle(Api(lambda _context: WATCH.get()), None, context) is None  # type: ignore[arg-type]
