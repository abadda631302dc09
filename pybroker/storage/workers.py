"""The threads that open, flush and clear logs: a pool whose size may change while it works.

Owns that what was handed in before a change is done. Must not know what is done.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

_P = ParamSpec("_P")
_T = TypeVar("_T")
_NAME = "pybroker-storage"


class Workers(Executor):
    """At most `size` threads. Used from the event loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size, _NAME)
        self._replaced: list[ThreadPoolExecutor] = []

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Have a function called by one of the threads."""
        return self._pool.submit(fn, *args, **kwargs)

    def resize(self, size: int) -> None:
        """Have at most so many threads from now on; those of before end when they have done what they have."""
        if size == self.size:
            return
        self._pool.shutdown(wait=False)
        self._replaced.append(self._pool)
        self.size, self._pool = size, ThreadPoolExecutor(size, _NAME)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End when everything is done that was handed in."""
        for pool in (*self._replaced, self._pool):
            pool.shutdown(wait, cancel_futures=cancel_futures)
