"""The one runner: where a machine meets the log, the clock and asyncio.

Owns the order of events, the batches, the parked replies and the timers of one machine. Must not know what the machine
decides, nor where records go: `append` is handed in.

What one wake-up drains is handled together against a draft of the machine, each event seeing the records of those
before it; appended as one batch; and answered together when the batch is committed. Meanwhile new events gather for the
next batch. The draft takes the machine's place only after the commit, so a failed append leaves nothing to undo: the
draft is dropped, and with it everything that was not committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pybroker.machine.machine import Machine, Outcome, Timer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

log = logging.getLogger("pybroker.machine")

Event = TypeVar("Event")
Record = TypeVar("Record")


class ClosedError(Exception):
    """The runner takes no events any more."""


class Runner(Generic[Event, Record]):
    """Drives one machine. Used from one event loop."""

    def __init__(
        self,
        machine: Machine[Event, Record],
        append: Callable[[Sequence[Record]], Awaitable[None]],
        *,
        now: Callable[[], int],
        max_records: int,
        call_later: Callable[[float, Callable[[], None]], asyncio.TimerHandle] | None = None,
    ) -> None:
        """`append` returns when the records are committed; it is never called again before it returned.

        `now` is the clock in milliseconds. A batch is closed when it has `max_records` or more.
        """
        # Invariant: shows exactly the committed records.
        self._machine = machine
        self._append = append
        self._now = now
        self._max_records = max_records
        self._call_later = call_later
        self._waiting: deque[tuple[Event, asyncio.Future[Any] | None]] = deque()
        # Not None exactly while events wait or are in work.
        self._work: asyncio.Task[None] | None = None
        self._timers: dict[str, Timer] = {}
        # Invariant: set for the earliest timer, None without timers.
        self._alarm: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def machine(self) -> Machine[Event, Record]:
        """The machine in its committed state, to be read only."""
        return self._machine

    def has_timer(self, key: str) -> bool:
        """Tell whether a timer is set and has not fired."""
        return key in self._timers

    def submit(self, event: Event) -> asyncio.Future[Any]:
        """Hand in an event; the future is the machine's reply, when what it decided is committed.

        The future fails with what `handle` raised, with what `append` raised, or with `ClosedError`.
        """
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._closed:
            reply.set_exception(ClosedError("no more events are taken"))
        else:
            self._enqueue(event, reply)
        return reply

    def set_timers(self, timers: Sequence[Timer]) -> None:
        """Set and cancel timers."""
        for timer in timers:
            if timer.deadline_ms is None:
                self._timers.pop(timer.key, None)
            else:
                self._timers[timer.key] = timer
        self._set_alarm()

    async def close(self) -> None:
        """Take no more events, finish those that wait, and drop the timers."""
        self._closed = True
        self._timers.clear()
        self._set_alarm()
        while self._work is not None:
            await asyncio.shield(self._work)

    def _enqueue(self, event: Event, reply: asyncio.Future[Any] | None) -> None:
        self._waiting.append((event, reply))
        if self._work is None:
            # A task begins in the next turn of the loop: all that this turn submits is one batch.
            self._work = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._step_batch()
        finally:
            self._work = None

    async def _step_batch(self) -> None:
        draft = self._machine.draft()
        records: list[Record] = []
        parked: list[tuple[asyncio.Future[Any] | None, Outcome[Record, Any]]] = []
        try:
            while self._waiting and len(records) < self._max_records:
                event, reply = self._waiting.popleft()
                outcome = self._handle(draft, event, reply)
                if outcome is not None:
                    parked.append((reply, outcome))
                    records.extend(outcome.records)
            if records:
                await self._append(records)
        except Exception as error:  # noqa: BLE001 - whatever ended the batch is the answer to everyone in it
            for reply, _ in parked:
                _fail(reply, error)
            return
        self._machine = draft
        for reply, outcome in parked:
            if outcome.timers:
                self.set_timers(outcome.timers)
            if reply is not None and not reply.done():
                reply.set_result(outcome.reply)

    def _handle(
        self, draft: Machine[Event, Record], event: Event, reply: asyncio.Future[Any] | None
    ) -> Outcome[Record, Any] | None:
        if reply is not None and reply.done():
            return None  # Whoever asked has gone, and nothing was decided yet.
        try:
            outcome = draft.handle(event, self._now())
        except Exception as error:  # noqa: BLE001 - the answer to this event alone: `handle` changes nothing
            _fail(reply, error)
            return None
        for record in outcome.records:
            draft.apply(record)
        return outcome

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        deadlines = [timer.deadline_ms for timer in self._timers.values() if timer.deadline_ms is not None]
        if deadlines:
            call_later = self._call_later or asyncio.get_running_loop().call_later
            self._alarm = call_later(max(0, min(deadlines) - self._now()) / 1000, self._fire)

    def _fire(self) -> None:
        now = self._now()
        due = [timer for timer in self._timers.values() if timer.deadline_ms is not None and timer.deadline_ms <= now]
        for timer in sorted(due, key=lambda timer: timer.deadline_ms or 0):
            del self._timers[timer.key]
            self._enqueue(timer.event, None)
        self._alarm = None
        self._set_alarm()


def _fail(reply: asyncio.Future[Any] | None, error: Exception) -> None:
    if reply is None:
        log.error("an event that a timer brought failed", exc_info=error)
    elif not reply.done():
        reply.set_exception(error)
