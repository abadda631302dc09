"""A reply that comes later: told once by whoever decides, heard by whoever asked.

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

    told: bool = False
    """Whether `value` and `error` are what was told; a reply that is listened to is handed on and not kept."""
    value: Any = None
    error: Exception | None = None
    in_slices: bool = False
    """Whether it waits for work of this process alone, and not for what others do."""
    _hear: Callable[[Any, Exception | None], None] | None = None
    _through: Callable[[Any], Any] | None = None

    def __call__(self, value: Any, error: Exception | None) -> None:
        """Tell the reply, or why there is none; called once."""
        if self._through is not None and error is None:
            try:
                value = self._through(value)
            except Exception as fault:  # noqa: BLE001 - whoever asked is told
                error = fault
        hear = self._hear
        if hear is not None:
            hear(value, error)
        else:
            self.told, self.value, self.error = True, value, error

    def through(self, change: Callable[[Any], Any]) -> Reply:
        """Let the reply be heard as `change` makes it; called at most once, before it is told or heard."""
        if self.told:
            self.value = change(self.value) if self.error is None else None
        else:
            self._through = change
        return self

    def hear(self, hear: Callable[[Any, Exception | None], None]) -> None:
        """Have `hear` called with the reply and None, or None and an exception: now, if it is told already."""
        if self.told:
            hear(self.value, self.error)
        else:
            self._hear = hear

    def __await__(self) -> Generator[Any, None, Any]:
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def hear(value: Any, error: Exception | None) -> None:
            if told.done():
                return
            if error is not None:
                told.set_exception(error)
            else:
                told.set_result(value)

        self.hear(hear)
        return told.__await__()
