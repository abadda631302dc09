"""A reply that may be set later: set once, and passed to a callback.

The reply and the callback may be set in either order. A handler returns a `Reply` when its response may be ready in the
same iteration of the event loop as the request: a future would cost one more iteration, a task several. A `Reply` can
also be awaited.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class Reply(msgspec.Struct, eq=False):
    """One reply, made by `Reply()`. A struct, since one is made for each request. Used from one thread."""

    is_set: bool = False
    """Whether `value` and `error` are set.

    Stays False if there is a callback: the reply is passed to it and not stored.
    """
    value: Any = None
    error: Exception | None = None
    in_slices: bool = False
    """Whether the reply waits only for work of this process, not for other nodes or clients."""
    _callback: Callable[[Any, Exception | None], None] | None = None
    _through: Callable[[Any], Any] | None = None

    def __call__(self, value: Any, error: Exception | None) -> None:
        """Set the reply or the exception. Called once."""
        if self._through is not None and error is None:
            try:
                value = self._through(value)
            except Exception as fault:  # noqa: BLE001 - it becomes the reply
                error = fault
        callback = self._callback
        if callback is not None:
            callback(value, error)
        else:
            self.is_set, self.value, self.error = True, value, error

    def through(self, change: Callable[[Any], Any]) -> Reply:
        """Pass the reply through `change` before the callback receives it.

        Several changes apply in the order of the calls. Called before `on_complete`.
        """
        before = self._through
        if self.is_set:
            self.value = change(self.value) if self.error is None else None
        elif before is None:
            self._through = change
        else:
            self._through = lambda value: change(before(value))
        return self

    def on_complete(self, callback: Callable[[Any, Exception | None], None]) -> None:
        """Call `callback` with the reply and None, or with None and an exception; at once if the reply is set."""
        if self.is_set:
            callback(self.value, self.error)
        else:
            self._callback = callback

    def __await__(self) -> Generator[Any, None, Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def complete(value: Any, error: Exception | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)

        self.on_complete(complete)
        return future.__await__()
