"""An event loop without a clock, sockets and threads: time jumps to the next timer, work for threads is done in turn.

Owns the lives of processes too: what was begun in a life's context ends with it, in the middle of whatever it did, as
what a killed process did ends. Two runs that begin alike go on alike.
"""

from __future__ import annotations

import asyncio
import inspect
import selectors
from collections.abc import Callable
from contextvars import Context, ContextVar
from random import Random
from typing import Any

_LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


class Life:
    """One process, from its start to its end."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.is_over = False
        self.context = Context()
        self.context.run(_LIFE.set, self)
        # They are kept: what a task does when it is collected would come at a time of its own.
        self.tasks: list[asyncio.Task[Any]] = []

    def forget(self) -> None:
        """Drop what never began to run, and what that would have awaited."""
        for task in self.tasks:
            coroutine: Any = task.get_coro()
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                for argument in filter(inspect.iscoroutine, coroutine.cr_frame.f_locals.values()):
                    argument.close()
                coroutine.close()
        self.tasks.clear()

    def guarded(self, callback: Callable[..., object], *arguments: Any) -> None:
        if not self.is_over:
            callback(*arguments)


def living() -> Any:
    """The owner of the life that runs now."""
    life = _LIFE.get()
    assert life is not None
    return life.owner


class SlowDisk:
    """Stands for the thread that writes: one piece of work after the other, each of which takes a while."""

    def __init__(self, random: Random, most_s: float) -> None:
        self._random, self._most_s = random, most_s
        self._free_at = 0.0

    def due(self, now: float) -> float:
        self._free_at = max(now, self._free_at) + self._random.uniform(0, self._most_s)
        return self._free_at

    def shutdown(self, wait: bool = True) -> None:
        """Nothing is to be ended."""


class _NoSockets(selectors.SelectSelector):
    """Waits for nothing, and adds to the clock what it would have waited."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            self.now += timeout
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """`time()` begins at 0."""

    def __init__(self) -> None:
        self._no_sockets = _NoSockets()
        super().__init__(self._no_sockets)
        self.set_task_factory(_build_task)
        self.faults: list[str] = []
        self.set_exception_handler(self._note_fault)

    def time(self) -> float:
        return self._no_sockets.now

    def now_ms(self) -> int:
        """Milliseconds of the simulated clock; 1,000,000 is the beginning."""
        return 1_000_000 + round(self._no_sockets.now * 1000)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        life = _LIFE.get() if context is None else context.get(_LIFE)
        if life is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(life.guarded, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        life = _LIFE.get() if context is None else context.get(_LIFE)
        if life is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, life.guarded, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Do a thread's work in the life that wants it: when its disk comes to it, or soon."""
        future: asyncio.Future[Any] = self.create_future()

        def work() -> None:
            try:
                done = func(*args)
            except Exception as error:  # noqa: BLE001 - it is the future's
                if not future.cancelled():
                    future.set_exception(error)
            else:
                if not future.cancelled():
                    future.set_result(done)

        if isinstance(executor, SlowDisk):
            self.call_at(executor.due(self.time()), work)
        else:
            self.call_soon(work)
        return future

    def _note_fault(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            # What follows has the callback's address, which another run of the same seed does not repeat.
            message, _, _ = str(context.get("message")).partition("(")
            self.faults.append(f"{message}: {error!r}")


def _build_task(loop: Any, coroutine: Any, **how: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **how)
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    life = _LIFE.get()
    if life is not None:
        life.tasks.append(task)
    return task
