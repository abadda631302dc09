"""Control requests: event queue -> decode -> handler -> encode -> response. Runs on the loop's thread.

Owns the order of requests, the bound on requests in work (`queued.max.requests`), and requests that cannot be decoded
or whose handler fails. Must not know what a request means. A wake-up works for a few milliseconds. Requests that are
left wait, round-robin over connections (`turns`). Large ones are decoded and encoded by a thread (`large_requests`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pybroker.machine.reply import Reply
from pybroker.metrics.requests import RequestCounts
from pybroker.net.dispatch import RefusedError
from pybroker.net.large_requests import LARGE_REQUEST, LARGE_RESPONSE, LargeRequests
from pybroker.net.native import ConnectionClosed, ControlRequest, mute
from pybroker.net.turns import Turns
from pybroker.net.work import Way, Work, build_way, failure, handle, refusal
from pybroker.protocol.errors import MalformedMessage
from pybroker.security.quotas import go_on, throttle_time_ms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from pybroker.net.dispatch import Dispatch
    from pybroker.net.events import EventTable
    from pybroker.net.native import DataPlane, Event

log = logging.getLogger("pybroker.net")

_DRAIN_AT_ONCE = 256
_SLICE_SECONDS = 0.004
"""How long a wake-up works on requests before the loop's other work has its turn."""
_EXPENSIVE_SECONDS = 0.0005
"""What a request takes at least to be remembered where nothing waits: a busy coordinator's do not."""


class Contexts(Protocol):
    """Makes what a handler knows of its request."""

    def build(self, origin: ControlRequest) -> Any:
        """Return the context of a request."""


class Limits(NamedTuple):
    """How much one pipeline works on, and the clock that its time slices are measured by."""

    requests: int
    """Requests in work at a time (`queued.max.requests`)."""
    elements: int
    """Elements that a request may have (`socket.request.max.elements`)."""
    clock: Callable[[], float] = time.perf_counter
    """Returns seconds, rising."""


class Pipeline:
    """Takes events from the data plane and answers requests until it is stopped."""

    def __init__(
        self, data_plane: DataPlane, dispatch: Dispatch, contexts: Contexts, events: EventTable, limits: Limits
    ) -> None:
        """`events` has the handlers of what is no control request."""
        self._data_plane = data_plane
        self._dispatch = dispatch
        # By `ControlRequest.api`, as they are first asked for.
        self._ways: dict[int, Way] = {}
        self.counts = RequestCounts()
        self._new_context = contexts.build
        self._events = events
        events.on(ConnectionClosed, self._connection_closed)
        self._max_in_work, self._max_elements, self._clock = limits
        self._large = LargeRequests(limits.elements)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = False
        # Requests that the last wake-up had no time for. Invariant: while there are any, `_go_on` is scheduled.
        self._turns: Turns[ControlRequest] = Turns()
        self._scheduled = False
        # Seconds that a request took of late, by `ControlRequest.api`: what the next is expected to take.
        self._costs: dict[int, float] = {}
        # By connection. Invariant: a key is here while a handler of that connection waits, and only then.
        self._works: dict[int, Work] = {}
        # Those whose handlers have returned a `Reply` since the last wake-up ended.
        self._fresh: list[Work] = []
        # Answers that leave together. Invariant: empty unless `_draining`.
        self._answers: list[tuple[ControlRequest, bytes]] = []
        self._draining = False
        # Invariant: requests drained and not yet answered, those that wait for their turn included.
        self._in_work = 0
        self._tasks: set[asyncio.Task[None]] = set()
        # Completed when nothing is in work; None while nobody waits for that.
        self._idle: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Begin to take events on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._watch()

    async def finish(self) -> None:
        """Wait until every request that has begun is answered."""
        if self._in_work:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def stop(self) -> None:
        """Take no more events."""
        if self._reading and self._loop is not None:
            self._loop.remove_reader(self._data_plane.event_fd)
        self._reading = False
        self._loop = None
        for task in self._tasks:
            task.cancel()
        self._large.stop()
        self._events.clear()
        if counted := str(self.counts):
            log.info("requests of the control plane: %s", counted)

    def _watch(self) -> None:
        if self._loop is not None and not self._reading:
            self._loop.add_reader(self._data_plane.event_fd, self._drain)
            self._reading = True

    def _drain(self) -> None:
        while self._loop is not None:
            limit = min(self._max_in_work - self._in_work, _DRAIN_AT_ONCE)
            if limit > 0:
                events = self._data_plane.drain(limit)
            else:
                # What is not drained waits in the data plane; settle watches again as soon as there is room.
                self._loop.remove_reader(self._data_plane.event_fd)
                self._reading, events = False, []
            self._step_events(events)
            if self._turns:
                if not self._scheduled:
                    self._scheduled = True
                    self._loop.call_soon(self._go_on)
                return
            if len(events) < limit or limit <= 0:
                return

    def _go_on(self) -> None:
        """Work on requests that wait for their turn, after what has come meanwhile has got its own."""
        self._scheduled = False
        self._drain()

    def _step_events(self, events: Sequence[Event]) -> None:
        self._draining = True
        self._events.begin_batch()
        try:
            try:
                self._serve(events)
            finally:  # `begin_batch` announced that this follows: nobody else steps what the handlers have begun.
                self._decide_all()
        finally:
            self._draining = False
            self._send_answers()
            self._hold()

    def _serve(self, events: Sequence[Event]) -> None:
        """Step events in their order, and requests in fair turns where some have to wait, until time is up."""
        turns, now = self._turns, self._clock()
        end = now + _SLICE_SECONDS
        for event in events:
            if not isinstance(event, ControlRequest):
                self._events.handle(event)
                continue
            self._in_work += 1
            if turns or now >= end:
                turns.push(event.connection, event, self._costs.get(event.api, 0.0), now)
                continue
            began = now
            self._step_request(event, event.connection)
            now = self._clock()
            if now - began >= _EXPENSIVE_SECONDS:
                self._note_cost(event, now - began)
        while turns and now < end:
            event, began = turns.pop(), now
            self._step_request(event, event.connection)
            now = self._clock()
            turns.charge(event.connection, now - began, now)
            self._note_cost(event, now - began)

    def _note_cost(self, event: ControlRequest, seconds: float) -> None:
        known = self._costs.get(event.api)
        self._costs[event.api] = seconds if known is None else known + (seconds - known) / 8

    def _decide_all(self) -> None:
        """Let what the wake-up has brought be decided, and answer what is."""
        self._events.end_batch()
        fresh, self._fresh = self._fresh, []
        for work in fresh:
            reply = work.reply
            if reply is None or not reply.is_set:
                self._fresh.append(work)
            else:
                self.complete(work, reply.value, reply.error)

    def _send_answers(self) -> None:
        answers, self._answers = self._answers, []
        if not answers:
            return
        if len(answers) == 1:
            ((event, payload),) = answers
            self._data_plane.respond(event.connection, event.request, payload)
        else:
            self._data_plane.respond_many(answers)
        self.settle(len(answers))

    def _hold(self) -> None:
        """Listen for the replies that the wake-up has not brought, and count their requests no longer."""
        fresh, self._fresh = self._fresh, []
        for work in fresh:
            self._listen(work)
            if self._works.get(work.connection) is not work:
                continue  # It was answered.
            work.held = True
            self._data_plane.hold(work.connection, work.event.request)
            self.settle(1)

    def _listen(self, work: Work) -> None:
        reply, work.reply = work.reply, None
        if reply is not None:
            reply.on_complete(partial(self.complete, work))

    def _connection_closed(self, event: ConnectionClosed) -> None:
        self._turns.forget(event.connection)
        work = self._works.get(event.connection)
        if work is not None:
            work.gone = True

    def _step_request(self, event: ControlRequest, connection: int) -> None:
        """Answer a request in place, or leave a task behind that will."""
        context = self._new_context(event)
        try:
            way = self._ways.get(self._dispatch.key(event)) or self._new_way(event)
            if way is None:
                self._answer_unsupported(event, context)
                return
            if event.size > LARGE_REQUEST:
                self._begin_large(event, way, context)
                return
            request = event.decode(way.request, way.is_flexible, self._max_elements)
        except (RefusedError, MalformedMessage) as error:
            self.close(event, refusal(error, self._max_elements))
            return
        way.counts.requests += 1
        try:
            outcome = handle(way, request, context)
        except Exception as error:  # noqa: BLE001  # every failure of a handler is its client's answer
            self._respond(event, way, failure(way, request, context, error), context)
            return
        if type(outcome) is Reply:
            work = self._works[connection] = Work(connection, event, way, request, context, outcome)
            self._fresh.append(work)
            if not self._draining:
                self._listen(work)
            return
        if isinstance(outcome, bytes) or not hasattr(outcome, "__await__"):
            self._respond(event, way, outcome, context)
            return
        work = self._works[connection] = Work(connection, event, way, request, context, None)
        event.wait()
        self.spawn(self._wait(work, outcome))

    def _begin_large(self, event: ControlRequest, way: Way, context: Any) -> None:
        """Leave a task behind that decodes a request in a thread and answers it. Meanwhile it takes no room."""
        if context.time is not None:
            context.time.pause()
        connection = event.connection
        work = self._works[connection] = Work(connection, event, way, None, context, None, held=True)
        self._data_plane.hold(connection, event.request)
        self.settle(1)
        self._large.begin(self, work)

    def _new_way(self, event: ControlRequest) -> Way | None:
        """Return how a version of an API is served, None where it is not; raises RefusedError for one that is unknown,
        or whose handler cannot be read now.
        """
        api, served = self._dispatch.find(event)
        if not served:
            return None
        counts = self.counts.of(api.name, event.api_version)
        try:
            way = build_way(api, event.api_key, event.api_version, counts)
        except (OSError, ImportError) as error:  # the first request of an API has its handler read
            raise RefusedError(f"{api.name} cannot be served now: {error}") from error
        self._ways[self._dispatch.key(event)] = way
        return way

    def complete(self, work: Work, response: Any, error: Exception | None) -> None:
        """Send the response to a request, or that to its handler's failure."""
        self.end(work)
        go_on(work.context)
        if error is not None:
            response = failure(work.way, work.request, work.context, error)
        self._respond(work.event, work.way, response, work.context)

    def end(self, work: Work) -> None:
        """Take a request that is about to be answered out of those that are worked on."""
        del self._works[work.connection]
        if work.held:
            self._in_work += 1

    async def _wait(self, work: Work, outcome: Awaitable[Any]) -> None:
        try:
            response = await outcome
        except Exception as error:  # noqa: BLE001  # every failure of a handler is its client's answer
            self.complete(work, None, error)
        else:
            self.complete(work, response, None)

    def _answer_unsupported(self, event: ControlRequest, context: Any) -> None:
        api, _served = self._dispatch.find(event)
        answer = api.unsupported(context)
        if answer is None:
            self.close(
                event,
                f"{api.name} version {event.api_version}: expected {api.min_version} to {api.max_version}",
            )
            return
        self._data_plane.respond(event.connection, event.request, answer)
        self.settle(1)

    def _respond(self, event: ControlRequest, way: Way, response: Any, context: Any) -> None:
        """Send the response, with the time to wait; `bytes` go as they are, None closes the connection."""
        if response is None:
            self.close(event, f"{way.api.name} could not be answered")
            return
        throttle = 0 if context is None else throttle_time_ms(context)
        wait = 0 if context is None else context.wait_ms
        if not isinstance(response, bytes):
            try:
                if way.has_throttle_time:
                    wait = response.throttle_time_ms = max(throttle, response.throttle_time_ms)
                encoded = way.response.encode_within(response, way.version, LARGE_RESPONSE)
            except Exception:
                log.exception("%s: failed to encode the response", way.api.name)
                self.close(event, f"{way.api.name} could not be answered")
                return
            self._maybe_mute(event, wait, throttle)
            if encoded is None:
                self._begin_encoding(event, way, response)
                return
            response = way.prefix + encoded
        else:
            self._maybe_mute(event, wait, throttle)
        if self._draining and not (context is not None and context.ends_connection):
            self._answers.append((event, response))
            return
        is_last = context is not None and context.ends_connection
        self._data_plane.respond(event.connection, event.request, response, last=is_last)
        self.settle(1)

    def _maybe_mute(self, event: ControlRequest, wait_ms: int, muted_ms: int) -> None:
        """Have a connection wait for so long as its answer is going to say (KIP-219), beyond what it does already."""
        if wait_ms > muted_ms:
            mute(self._data_plane, event.connection, wait_ms)

    def _begin_encoding(self, event: ControlRequest, way: Way, response: Any) -> None:
        """Leave a task behind that encodes a large answer in a thread and sends it."""
        connection = event.connection
        work = self._works[connection] = Work(connection, event, way, None, None, None)
        self._large.begin_response(self, work, response)

    def close(self, event: ControlRequest, reason: str) -> None:
        """Close the connection of a request, and log why."""
        log.warning("closing connection from %s:%s: %s", event.peer_host, event.peer_port, reason)
        self._send_answers()  # Those that were before it are not lost.
        self._data_plane.close_connection(event.connection)
        self.settle(1)

    def settle(self, count: int) -> None:
        """Free the slots of requests that are done; events are drained again if there were none left."""
        self._in_work -= count
        if not self._reading and self._in_work < self._max_in_work:
            self._watch()
        if not self._in_work and self._idle is not None:
            idle, self._idle = self._idle, None
            if not idle.done():  # The waiter may have given up.
                idle.set_result(None)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until this pipeline stops."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
