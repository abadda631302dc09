"""One caller at a time: the rule of Kafka's consumer, applied to every public method of a class.

Owns the current caller of a client, the error of a second caller, and how `close` ends the calls in progress. Kafka
calls `acquire` and `release` in each method; here `one_caller` wraps the methods. Must not know clients.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Collection
from contextvars import ContextVar
from typing import Any, TypeVar

from pybroker.client.arguments import arguments_of, checked, refuse_keywords
from pybroker.client.errors import ClientError, ClosedError, ConcurrentAccessError

Class = TypeVar("Class", bound=type)

_inside: ContextVar[tuple[asyncio.Timeout, ...]] = ContextVar("calls of asyncio clients", default=())
"""The calls that the running code is part of. A call from a listener is part of the call that runs the listener."""

FREE_CALLS = ("close", "metrics", "partition_metrics", "metric_values")
"""Methods that another thread or task may call at any time."""


class ThreadCalls:
    """The calls of a blocking client: one thread at a time, reentrant for calls from a listener."""

    __slots__ = ("_name", "closes", "lock")

    def __init__(self, name: str) -> None:
        self._name = name
        self.lock = threading.RLock()
        """Owned by the thread that is inside."""
        self.closes = False
        """A thread closes the client, or has closed it."""

    def refuse(self, method: str) -> ClientError:
        """Return the error of a second caller."""
        if self.closes:
            return ClosedError(f"the {self._name} is closed")
        thread = threading.current_thread().name
        return ConcurrentAccessError(
            f"{self._name} is not safe for multi-threaded access: thread {thread!r} called {method} during a call of "
            f"another thread; create one {self._name} for each thread"
        )


class TaskCalls:
    """The calls of an asyncio client: one task at a time, with the tasks that its listeners start."""

    def __init__(self, name: str, *, is_exclusive: bool = True) -> None:
        """Without `is_exclusive` calls may overlap: `Consumer` has ThreadCalls, and Ctrl-C leaves a call that is
        ending.
        """
        self._name, self._is_exclusive = name, is_exclusive
        self._in_progress: list[asyncio.Timeout] = []
        self._left = asyncio.Event()
        self.closes = False
        """A task closes the client, or has closed it. Calls from its listeners continue."""

    def __bool__(self) -> bool:
        """Whether a call is in progress, or none is accepted."""
        return self.closes or bool(self._in_progress)

    def check(self, method: str) -> None:
        """Raise ConcurrentAccessError where another task is inside, and ClosedError where another one closes."""
        if not self or self.is_inside():
            return
        if self.closes:
            raise ClosedError(f"the {self._name} is closed")
        if not self._is_exclusive:
            return
        raise ConcurrentAccessError(
            f"{self._name} is not safe for concurrent access: {method} was called during a call of another task; "
            f"create one {self._name} for each task, or await the call first"
        )

    async def run(self, method: str, call: Callable[[], Any]) -> Any:
        """Await a call as the current one. Raises as `check`; ClosedError where `interrupt` ends it."""
        self.check(method)
        scope = asyncio.timeout(None)
        try:
            return await self._run_in(scope, call)
        except TimeoutError:
            if scope.expired():
                raise ClosedError(f"the {self._name} was closed during {method}") from None
            raise

    async def _run_in(self, scope: asyncio.Timeout, call: Callable[[], Any]) -> Any:
        token = _inside.set((*_inside.get(), scope))
        self._in_progress.append(scope)
        try:
            async with scope:
                return await call()
        finally:
            self._in_progress.remove(scope)
            self._left.set()
            _inside.reset(token)

    def interrupt(self) -> list[asyncio.Timeout]:
        """End all calls with ClosedError from now on, except those that the caller is part of."""
        self.closes = True
        others = [scope for scope in self._in_progress if scope not in _inside.get()]
        for scope in others:
            if scope.when() is None:
                scope.reschedule(asyncio.get_running_loop().time())
        return others

    async def close(self, last: Callable[[], Any], timeout_s: float) -> bool:
        """End the calls in progress, and await the last one; false after the timeout."""
        scope = asyncio.timeout(timeout_s)
        others = self.interrupt()

        async def await_last() -> None:
            while not set(others).isdisjoint(self._in_progress):
                self._left.clear()
                await self._left.wait()
            await last()

        try:
            await self._run_in(scope, await_last)
        except TimeoutError:
            if not scope.expired():
                raise
        return not scope.expired()

    def is_inside(self) -> bool:
        """Whether the running code is part of a call in progress."""
        return any(scope in self._in_progress for scope in _inside.get())


def running_loop(name: str) -> asyncio.AbstractEventLoop:
    """Return the running event loop. Raises ClientError where none runs."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ClientError(f"{name} needs a running event loop: call it in a coroutine, or use {name[5:]}") from None


def one_caller(*, free: Collection[str]) -> Callable[[Class], Class]:
    """Wrap every public method of a class, except those in `free`, so that it rejects a second caller.

    All of them check their arguments. The class has `_calls`: TaskCalls where its methods are coroutine functions,
    else ThreadCalls.
    """

    def decorate(cls: Class) -> Class:
        for name in dir(cls):
            function = inspect.getattr_static(cls, name)
            if not name.startswith("_") and inspect.isfunction(function):
                setattr(cls, name, checked(function) if name in free else guarded(function))
        setattr(cls, "__init__", refuse_keywords(vars(cls)["__init__"]))  # noqa: B010 (mypy refuses the assignment)
        return cls

    return decorate


def guarded(function: Callable[..., Any]) -> Any:
    """Return a method that checks its arguments, and rejects a second caller."""
    name = function.__name__

    @functools.wraps(function)
    async def call_async(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        arguments_of(function).check(self, args, kwargs)
        return await self._calls.run(name, lambda: function(self, *args, **kwargs))

    @functools.wraps(function)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        arguments_of(function).check(self, args, kwargs)
        calls = self._calls
        if isinstance(calls, TaskCalls):
            calls.check(name)
            return function(self, *args, **kwargs)
        if not calls.lock.acquire(False):
            raise calls.refuse(name)
        try:
            return function(self, *args, **kwargs)
        finally:
            calls.lock.release()

    return call_async if inspect.iscoroutinefunction(function) else call
