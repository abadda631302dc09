"""A reply that comes later: set once, and handed to a callback.

Owns the meeting of both, in either order. It is what a handler returns whose answer may come before the wake-up is over
that brought the request: a future would cost a turn of the loop, a task several. It can be awaited as well.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class Reply(msgspec.Struct, eq=False):
    """One reply, made by `Reply()`: a struct, as one is made for each request. Used from one thread."""

    is_set: bool = False
    """Whether `value` and `error` are set; a reply with a callback is handed on and not kept."""
    value: Any = None
    error: Exception | None = None
    in_slices: bool = False
    """Whether it waits for work of this process alone, and not for what others do."""
    _callback: Callable[[Any, Exception | None], None] | None = None
    _through: Callable[[Any], Any] | None = None

    def __call__(self, value: Any, error: Exception | None) -> None:
        """Set the reply, or the exception; called once."""
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
        """Have `change` make the reply that the callback gets, of what those given before have made; called before
        there is a callback.
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
        """Call `callback` with the reply and None, or None and an exception: now, if it is set already."""
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
