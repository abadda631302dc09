"""The handlers of the data plane's events.

Owns the table from event classes to handlers, and the calls around each batch of events. Each part registers its
handlers where it is built. Must not know particular events; the pipeline handles control requests.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.net.native import Event, LogLine

E = TypeVar("E")

log = logging.getLogger("pybroker.net")


class EventTable:
    """Handlers by event class. They run on the loop, in the order of their registration."""

    def __init__(self) -> None:
        self._handlers: dict[type, list[Callable[[Any], object]]] = {}
        self._batch_begins: list[Callable[[], None]] = []
        self._batch_ends: list[Callable[[], None]] = []

    def on(self, kind: type[E], handle: Callable[[E], object]) -> None:
        """Register `handle` for events of a class. An event without a handler is ignored."""
        self._handlers.setdefault(kind, []).append(handle)

    def around_batches(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Call `begin` before the events of a wake-up are handled, and `end` before their responses are sent.

        Every `begin` is followed by its `end`, even if a handler raises.
        """
        self._batch_begins.append(begin)
        self._batch_ends.append(end)

    def clear(self) -> None:
        """Remove all handlers, to break the reference cycles with the parts that registered them."""
        self._handlers.clear()
        self._batch_begins.clear()
        self._batch_ends.clear()

    def handle(self, event: Event) -> None:
        """Call the handlers of an event. Their exceptions are passed on."""
        for handle in self._handlers.get(type(event), ()):
            handle(event)

    def begin_batch(self) -> None:
        """Call all `begin` of `around_batches`."""
        for begin in self._batch_begins:
            begin()

    def end_batch(self) -> None:
        """Call all `end` of `around_batches`."""
        for end in self._batch_ends:
            end()


def log_line(event: LogLine) -> None:
    """Log a message of the data plane."""
    log.log(logging.getLevelNamesMapping().get(event.level.upper(), logging.WARNING), "%s", event.text)
