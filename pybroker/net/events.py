"""Which part of a node handles which event of the data plane.

Owns the table from an event's class to its handlers, and the calls around each batch of events. Each part registers
where it is built. Must not know what an event means; control requests are the pipeline's.
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
    """Handlers by event class. Handlers run on the loop, in the order in which they were registered."""

    def __init__(self) -> None:
        self._handlers: dict[type, list[Callable[[Any], object]]] = {}
        self._batch_begins: list[Callable[[], None]] = []
        self._batch_ends: list[Callable[[], None]] = []

    def on(self, kind: type[E], handle: Callable[[E], object]) -> None:
        """Call `handle` with each event of this class. An event without a handler has no effect."""
        self._handlers.setdefault(kind, []).append(handle)

    def around_batches(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Call `begin` before the events of a wake-up are handled, and `end` before their responses are sent.

        Every `begin` is followed by its `end`, even if a handler raises.
        """
        self._batch_begins.append(begin)
        self._batch_ends.append(end)

    def clear(self) -> None:
        """Forget all handlers. The parts that registered them know this table: the references end here."""
        self._handlers.clear()
        self._batch_begins.clear()
        self._batch_ends.clear()

    def handle(self, event: Event) -> None:
        """Call the handlers of an event; raises what they raise."""
        for handle in self._handlers.get(type(event), ()):
            handle(event)

    def begin_batch(self) -> None:
        """Announce the events of a wake-up."""
        for begin in self._batch_begins:
            begin()

    def end_batch(self) -> None:
        """Announce that the events of a wake-up have been handled."""
        for end in self._batch_ends:
            end()


def log_line(event: LogLine) -> None:
    """Log a line of the data plane."""
    log.log(logging.getLevelNamesMapping().get(event.level.upper(), logging.WARNING), "%s", event.text)
