"""The runner: connects a machine with the log, the clock and asyncio.

Owns the order of events, the batches, the delayed replies and the timers of one machine. Must not know the machine's
decisions, nor the log: `append` is a parameter.

All queued events are handled together against a draft of the machine. Each event sees the records of the earlier ones.
Their records are appended as one batch, and the replies are passed on when the batch is committed. Meanwhile new events
are queued for the next batch. The draft is kept only after the commit. If an append fails, the draft is dropped with
all uncommitted changes.

An `append` that commits at once, or that returns a `Reply` for its commit, costs no task and no future. `queue` and
`step` are for frequent requests, `submit` for callers that await the reply.

An outcome may have `otherwise`: it returns another outcome for an event whose records the log rejects for good. It sees
the state in which the event was handled.

An append may wait for a disk, or for replicas. If that takes too long, the caller receives an error. The appended
records stay in the log, and may be committed later.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pybroker.machine.machine import Delayed, Machine, Outcome, Timer
from pybroker.machine.reply import Reply
from pybroker.machine.timer_queue import TimerQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Hashable, Sequence

    from pybroker.machine.clock import Cancellable

log = logging.getLogger("pybroker.machine")

Event = TypeVar("Event")
Record = TypeVar("Record")
OnReply = Callable[[Any, Exception | None], None]
"""Called with the reply and None, or with None and an exception."""
_ALL = 1 << 31
RETRY_MS = 500
"""Delay after which a timer fires again if its event could not be committed: no caller would retry it."""

RAISED_MS = 10_000
"""Delay after which a timer fires again if the handling of its event raised."""


_Decided = list[tuple[Any, OnReply | Timer, Outcome[Record, Any]]]
"""Each event, its callback or the timer that fired it, and its outcome."""


class ClosedError(Exception):
    """The runner is closed and accepts no events."""


class UncommittedError(Exception):
    """The batch of the event, or the batch before it, was not committed in time. It may still be committed."""


class UnwritableError(Exception):
    """Raised by `append`: the log rejects some of the records for good."""


class SupersededError(Exception):
    """Another event waits under the same key; this event gets no reply."""


class Runner(Generic[Event, Record]):
    """Drives one machine. Used from one event loop."""

    def __init__(
        self,
        machine: Machine[Event, Record],
        append: Callable[[Sequence[Record]], Awaitable[None] | None],
        *,
        now: Callable[[], int],
        max_records: int,
        timeout_ms: int | None = None,
        call_later: Callable[[float, Callable[[], None]], Cancellable] | None = None,
        steady: Callable[[], int] | None = None,
    ) -> None:
        """`append` returns None if the records are committed, else an awaitable that completes when they are (best a
        `Reply`). It is not called again before that. `now` is the clock in milliseconds. If it can be set, timers use
        `steady`. A batch is closed when it has `max_records` or more. The callback receives `UncommittedError` when a
        commit takes longer than `timeout_ms`.
        """
        # Invariant: has applied exactly the committed records, except while a batch is being committed.
        self._machine = machine
        self._alone: frozenset[type] = getattr(machine, "alone", frozenset())
        self._append = append
        self._now = now
        self._max_records = max_records
        self._timeout_ms = timeout_ms
        # Maximum number of events in the next batch: smaller after a batch with records that the log rejects.
        self._at_most = _ALL
        # Each event with its callback, or with the timer that fired it.
        self._waiting: deque[tuple[Event, OnReply | Timer]] = deque()
        # Whether a step is scheduled on the loop.
        self._due = False
        self._stepping = False
        # The batch being appended. Invariant: not None exactly while an append is awaited.
        self._work: _Work[Event, Record] | None = None
        self._delayed: dict[Hashable, OnReply] = {}
        self._timer_queue = TimerQueue(now, self._ring, call_later, steady)
        self._closed = False

    @property
    def machine(self) -> Machine[Event, Record]:
        """The machine in its committed state, to be read only."""
        return self._machine

    @property
    def delayed(self) -> int:
        """Number of delayed replies."""
        return len(self._delayed)

    def has_timer(self, key: Hashable) -> bool:
        """Return whether a timer is set and has not fired."""
        return key in self._timer_queue

    def submit(self, event: Event) -> asyncio.Future[Any]:
        """Queue an event, and return a future of the machine's reply, which completes after the commit.

        The future fails with the exception of `handle` or `append`, or with `ClosedError`.
        """
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.post(event, _Requested(reply))
        return reply

    def post(self, event: Event, on_reply: OnReply) -> None:
        """Queue an event. `on_reply` is called once, with the reply and None, or with None and an exception."""
        self.queue(event, on_reply)
        if self._waiting and not self._due and self._work is None and not self._stepping:
            # The next iteration of the loop: all events of this iteration form one batch.
            self._due = True
            asyncio.get_running_loop().call_soon(self.step)

    def queue(self, event: Event, on_reply: OnReply) -> None:
        """Queue an event as `post` does, but let the caller call `step`."""
        if self._closed:
            on_reply(None, ClosedError("the runner is closed and accepts no events"))
        else:
            self._waiting.append((event, on_reply))

    def step(self) -> None:
        """Handle the queued events. If an append is awaited, they are handled after it."""
        self._due = False
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._waiting and self._work is None:
                self._step_batch()
        finally:
            self._stepping = False

    def set_timers(self, timers: Sequence[Timer]) -> None:
        """Set and cancel timers."""
        for timer in timers:
            self._timer_queue.set(timer)

    async def close(self) -> None:
        """Reject new events, handle the queued ones, fail the delayed replies, and drop the timers."""
        self._closed = True
        self._timer_queue.clear()
        self.step()
        while self._work is not None:
            await self._work.ended
            self.step()
        self._timer_queue.clear()
        delayed, self._delayed = self._delayed, {}
        for on_reply in delayed.values():
            on_reply(None, ClosedError("the runner is closed and accepts no events"))
        # The timer queue and `append` refer to the runner. These cycles would keep files open until garbage collection.
        self._timer_queue = TimerQueue(self._now, lambda _timers: None)
        self._append = _append_nothing

    def _step_batch(self) -> None:
        draft = self._machine.draft()
        records: list[Record] = []
        decided: _Decided[Record] = []
        waiting, now = self._waiting, self._now()
        at_most, self._at_most = self._at_most, _ALL
        handle, apply, alone = draft.handle, draft.apply, self._alone
        while waiting and len(records) < self._max_records and len(decided) < at_most:
            if alone and type(waiting[0][0]) in alone:
                if decided:
                    break
                at_most = 1
            event, on_reply = waiting.popleft()
            if type(on_reply) is _Requested and on_reply.removed():
                continue  # The caller does not wait any more, and the event is not handled yet.
            try:
                outcome = handle(event, now)
            except Exception as error:  # noqa: BLE001 - fails this event only: `handle` changes nothing
                self._fail(on_reply, error)
                continue
            for record in outcome.records:
                apply(record)
            decided.append((event, on_reply, outcome))
            records += outcome.records
        self._commit(draft, decided, records)

    def _commit(self, draft: Machine[Event, Record], decided: _Decided[Record], records: list[Record]) -> None:
        """Append the records, and complete the replies when they are committed."""
        try:
            committed = self._append(records) if records else None
        except Exception as error:  # noqa: BLE001 - fails every event of the batch
            self._give_up(draft, decided, error)
            return
        if committed is None:
            self._complete(draft, decided)
        else:
            self._await(draft, decided, committed)

    def _await(self, draft: Machine[Event, Record], decided: _Decided[Record], committed: Awaitable[None]) -> None:
        loop = asyncio.get_running_loop()
        work = self._work = _Work(draft, decided, loop.create_future())
        if self._timeout_ms is not None:
            work.timeout = loop.call_later(self._timeout_ms / 1000, self._time_out, work)
        if type(committed) is Reply:
            committed.on_complete(self._finish)
        else:
            work.task = loop.create_task(self._wait(committed))

    async def _wait(self, committed: Awaitable[None]) -> None:
        try:
            await committed
        except Exception as error:  # noqa: BLE001 - fails every event of the batch
            self._finish(None, error)
        else:
            self._finish(None, None)

    def _finish(self, _committed: None, error: Exception | None) -> None:
        """Complete the batch. Events queued meanwhile form the next batch, with those of this iteration of the loop."""
        work, self._work = self._work, None
        if work is None:
            return
        if work.timeout is not None:
            work.timeout.cancel()
        if error is None:
            self._complete(work.draft, work.decided)
        else:
            self._give_up(work.draft, work.decided, error)
        work.ended.set_result(None)
        if self._waiting and not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self.step)

    def _time_out(self, work: _Work[Event, Record]) -> None:
        """Fail all waiting callers, of the batch and of queued events, and repeat after the same timeout."""
        error = UncommittedError(f"not committed within {self._timeout_ms} ms")
        unanswered = [on_reply for _, on_reply in self._waiting if not isinstance(on_reply, Timer)]
        self._waiting = deque((event, on_reply) for event, on_reply in self._waiting if isinstance(on_reply, Timer))
        for index, (event, on_reply, outcome) in enumerate(work.decided):
            if not isinstance(on_reply, Timer) and on_reply is not _ignore_reply:
                work.decided[index] = (event, _ignore_reply, outcome)
                unanswered.append(on_reply)
        work.timeout = asyncio.get_running_loop().call_later((self._timeout_ms or 0) / 1000, self._time_out, work)
        for on_reply in unanswered:
            on_reply(None, error)

    def _complete(self, draft: Machine[Event, Record], decided: _Decided[Record]) -> None:
        self._machine = draft.keep()
        for _, on_reply, outcome in decided:
            for timer in outcome.timers:
                self._timer_queue.set(timer)
            if type(on_reply) is not Timer:
                reply = outcome.reply
                if type(reply) is Delayed:
                    self._delay(reply.key, on_reply)  # type: ignore[arg-type]
                else:
                    on_reply(reply, None)  # type: ignore[operator]
            for key, response in outcome.responses:
                waiting = self._delayed.pop(key, None)
                if waiting is not None:
                    waiting(response, None)

    def _delay(self, key: Hashable, on_reply: OnReply) -> None:
        before = self._delayed.pop(key, None)
        if before is not None:
            before(None, SupersededError("a newer event with the same key replaced this one"))
        self._delayed[key] = on_reply

    def _give_up(
        self,
        draft: Machine[Event, Record],
        decided: _Decided[Record],
        error: Exception,
    ) -> None:
        draft.drop()
        if isinstance(error, UnwritableError) and len(decided) > 1:
            # Only the event with the rejected records shall fail: all are handled again in smaller batches.
            self._waiting.extendleft((event, on_reply) for event, on_reply, _ in reversed(decided))
            self._at_most = len(decided) // 2
            return
        if isinstance(error, UnwritableError) and decided:
            event, on_reply, outcome = decided[0]
            otherwise = getattr(outcome, "otherwise", None)
            if otherwise is not None:
                self._decide_otherwise(event, on_reply, otherwise())
                return
        for _, on_reply, _ in decided:
            if not isinstance(on_reply, Timer):
                on_reply(None, error)
            elif on_reply.key not in self._timer_queue and not self._closed:
                log.warning("Failed to commit a timer event: %s; retrying", error)
                self._timer_queue.set(on_reply._replace(deadline_ms=self._now() + RETRY_MS))

    def _fail(self, on_reply: OnReply | Timer, error: Exception) -> None:
        """Fail an event that raised. An event of a timer is scheduled again, as no caller would retry it."""
        if not isinstance(on_reply, Timer):
            on_reply(None, error)
            return
        log.error("Failed to handle a timer event; retrying in %d ms", RAISED_MS, exc_info=error)
        if on_reply.key not in self._timer_queue and not self._closed:
            self._timer_queue.set(on_reply._replace(deadline_ms=self._now() + RAISED_MS))

    def _decide_otherwise(self, event: Event, on_reply: OnReply | Timer, outcome: Outcome[Record, Any]) -> None:
        draft = self._machine.draft()
        for record in outcome.records:
            draft.apply(record)
        self._commit(draft, [(event, on_reply, outcome)], list(outcome.records))

    def _ring(self, due: Sequence[Timer]) -> None:
        self._waiting.extend((timer.event, timer) for timer in due)
        if due and self._work is None and not self._stepping:
            self.step()


class _Work(Generic[Event, Record]):
    """An appended batch that is not yet committed."""

    __slots__ = ("decided", "draft", "ended", "task", "timeout")

    def __init__(self, draft: Machine[Event, Record], decided: _Decided[Record], ended: asyncio.Future[None]) -> None:
        self.draft = draft
        self.decided = decided
        self.ended = ended
        self.timeout: asyncio.TimerHandle | None = None
        # Referenced so that it is not garbage-collected while it waits.
        self.task: asyncio.Task[None] | None = None


class _Requested:
    """Callback that completes a future."""

    __slots__ = ("_reply",)

    def __init__(self, reply: asyncio.Future[Any]) -> None:
        self._reply = reply

    def removed(self) -> bool:
        return self._reply.done()

    def __call__(self, reply: Any, error: Exception | None) -> None:
        if self._reply.done():
            return
        if error is not None:
            self._reply.set_exception(error)
        else:
            self._reply.set_result(reply)


def _ignore_reply(_reply: Any, _error: Exception | None) -> None:
    """Replace a callback that has already received the timeout error."""


def _append_nothing(_records: Sequence[Any]) -> None:
    raise ClosedError("the log is closed")
