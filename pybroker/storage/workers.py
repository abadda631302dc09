"""The threads that open, flush and delete logs: a thread pool that can be resized while it works.

Owns that work submitted before a resize is completed. Must not know what the work does.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

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
        # Incomplete futures of this pool and of the pools that it has replaced.
        self._undone: set[Future[Any]] = set()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run a function on one of the threads."""
        future = self._pool.submit(fn, *args, **kwargs)
        self._undone.add(future)
        future.add_done_callback(self._undone.discard)
        return future

    def resize(self, size: int) -> None:
        """Change the number of threads; the previous threads exit after their submitted work is done."""
        if size == self.size:
            return
        self._pool.shutdown(wait=False)
        self.size, self._pool = size, ThreadPoolExecutor(size, _NAME)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down after all submitted work is done."""
        undone = list(self._undone)
        if cancel_futures:
            for future in undone:
                future.cancel()
        if wait:
            wait_for(undone)
        self._pool.shutdown(wait)
