"""Serves control requests: event queue -> decode -> handler -> encode -> response. Runs on the loop's thread.

Owns the order of requests, the limit of requests in work (`queued.max.requests`), and the handling of decoding errors
and handlers' exceptions. Must not know the content of requests. A wake-up works for a few milliseconds. The remaining
requests wait in a fair queue over connections (`turns`). A thread decodes and encodes large ones (`large_requests`).
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
from pybroker.net.work import Route, Work, build_route, failure, handle, refusal
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
"""Time that a wake-up works on requests before the loop continues with other work."""
_EXPENSIVE_SECONDS = 0.0005
"""Minimum time of a request whose cost is recorded while no requests wait. A busy coordinator's requests take less."""


class Contexts(Protocol):
    """Makes the contexts of requests."""

    def build(self, origin: ControlRequest) -> Any:
        """Return the context of a request."""


class Limits(NamedTuple):
    """The limits of a pipeline, and the clock of its time slices."""

    requests: int
    """Maximum requests in work (`queued.max.requests`)."""
    elements: int
    """Maximum elements of a request (`socket.request.max.elements`)."""
    clock: Callable[[], float] = time.perf_counter
    """Returns seconds of a monotonic clock."""


class Pipeline:
    """Drains events of the data plane and serves requests until it is stopped."""

    def __init__(
        self, data_plane: DataPlane, dispatch: Dispatch, contexts: Contexts, events: EventTable, limits: Limits
    ) -> None:
        """`events` has the handlers of all other events."""
        self._data_plane = data_plane
        self._dispatch = dispatch
        # By `Dispatch.key`, filled at the first request of each.
        self._routes: dict[int, Route] = {}
        self.counts = RequestCounts()
        self._new_context = contexts.build
        self._events = events
        events.on(ConnectionClosed, self._connection_closed)
        self._max_in_work, self._max_elements, self._clock = limits
        self._large = LargeRequests(limits.elements)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = False
        # Requests that did not fit in the last time slice. Invariant: while there are any, `_go_on` is scheduled.
        self._turns: Turns[ControlRequest] = Turns()
        self._scheduled = False
        # Moving average of the seconds that a request takes, by `ControlRequest.api`: the expected cost of the next
        # one.
        self._costs: dict[int, float] = {}
        # By connection. Invariant: a connection is a key exactly while a handler of its request waits.
        self._works: dict[int, Work] = {}
        # Requests whose handlers have returned a `Reply` in this wake-up.
        self._fresh: list[Work] = []
        # Responses that are sent together. Invariant: empty unless `_draining`.
        self._responses: list[tuple[ControlRequest, bytes]] = []
        self._draining = False
        # Number of drained requests without a response, including those in `_turns`, excluding held ones.
        self._in_work = 0
        self._tasks: set[asyncio.Task[None]] = set()
        # Completed when no request is in work; None unless `finish` waits.
        self._idle: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Start to drain events on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._watch()

    async def finish(self) -> None:
        """Wait until all requests in work have their responses."""
        if self._in_work:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def stop(self) -> None:
        """Stop draining events."""
        if self._reading and self._loop is not None:
            self._loop.remove_reader(self._data_plane.event_fd)
        self._reading = False
        self._loop = None
        for task in self._tasks:
            task.cancel()
        self._large.stop()
        self._events.clear()
        if counted := str(self.counts):
            log.info("Requests processed in the control plane: %s", counted)

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
                # Further events wait in the data plane until `complete` frees a slot.
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
        """Serve the waiting requests, with the events that have arrived meanwhile."""
        self._scheduled = False
        self._drain()

    def _step_events(self, events: Sequence[Event]) -> None:
        self._draining = True
        self._events.begin_batch()
        try:
            try:
                self._serve(events)
            finally:  # Each `begin_batch` needs its `end_batch`, which steps the machines.
                self._decide_all()
        finally:
            self._draining = False
            self._send_responses()
            self._hold()

    def _serve(self, events: Sequence[Event]) -> None:
        """Handle events in their order, and serve requests until the time slice ends.

        The others wait in the fair queue.
        """
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
        """Call the ends of the batch, and complete the requests whose replies are set."""
        self._events.end_batch()
        fresh, self._fresh = self._fresh, []
        for work in fresh:
            reply = work.reply
            if reply is None or not reply.is_set:
                self._fresh.append(work)
            else:
                self.complete(work, reply.value, reply.error)

    def _send_responses(self) -> None:
        responses, self._responses = self._responses, []
        if not responses:
            return
        if len(responses) == 1:
            ((event, payload),) = responses
            self._data_plane.respond(event.connection, event.request, payload)
        else:
            self._data_plane.respond_many(responses)
        self.free_slots(len(responses))

    def _hold(self) -> None:
        """Wait for the replies that are not set in this wake-up. Their requests do not count as in work any more."""
        fresh, self._fresh = self._fresh, []
        for work in fresh:
            self._listen(work)
            if self._works.get(work.connection) is not work:
                continue  # The reply was set.
            work.held = True
            self._data_plane.hold(work.connection, work.event.request)
            self.free_slots(1)

    def _listen(self, work: Work) -> None:
        reply, work.reply = work.reply, None
        if reply is not None:
            reply.on_complete(partial(self.complete, work))

    def _connection_closed(self, event: ConnectionClosed) -> None:
        self._turns.forget(event.connection)
        work = self._works.get(event.connection)
        if work is not None:
            work.removed = True

    def _step_request(self, event: ControlRequest, connection: int) -> None:
        """Serve a request, at once or by a task."""
        context = self._new_context(event)
        try:
            route = self._routes.get(self._dispatch.key(event)) or self._new_route(event)
            if route is None:
                self._respond_unsupported(event, context)
                return
            if event.size > LARGE_REQUEST:
                self._begin_large(event, route, context)
                return
            request = event.decode(route.request, route.is_flexible, self._max_elements)
        except (RefusedError, MalformedMessage) as error:
            self.close(event, refusal(error, self._max_elements))
            return
        route.counts.requests += 1
        try:
            outcome = handle(route, request, context)
        except Exception as error:  # noqa: BLE001  # every exception of a handler becomes an error response
            self._respond(event, route, failure(route, request, context, error), context)
            return
        if type(outcome) is Reply:
            work = self._works[connection] = Work(connection, event, route, request, context, outcome)
            self._fresh.append(work)
            if not self._draining:
                self._listen(work)
            return
        if isinstance(outcome, bytes) or not hasattr(outcome, "__await__"):
            self._respond(event, route, outcome, context)
            return
        work = self._works[connection] = Work(connection, event, route, request, context, None)
        event.wait()
        self.spawn(self._wait(work, outcome))

    def _begin_large(self, event: ControlRequest, route: Route, context: Any) -> None:
        """Start a task that decodes a request in a thread and serves it.

        Meanwhile the request does not count as in work.
        """
        if context.time is not None:
            context.time.pause()
        connection = event.connection
        work = self._works[connection] = Work(connection, event, route, None, context, None, held=True)
        self._data_plane.hold(connection, event.request)
        self.free_slots(1)
        self._large.begin(self, work)

    def _new_route(self, event: ControlRequest) -> Route | None:
        """Return how a version of an API is served, None for an unserved version.

        Raises RefusedError for an unknown API, or if its handler's module cannot be imported.
        """
        api, served = self._dispatch.find(event)
        if not served:
            return None
        counts = self.counts.of(api.name, event.api_version)
        try:
            route = build_route(api, event.api_key, event.api_version, counts)
        except (OSError, ImportError) as error:  # the first request of an API imports its handler
            raise RefusedError(f"{api.name} cannot be served now: {error}") from error
        self._routes[self._dispatch.key(event)] = route
        return route

    def complete(self, work: Work, response: Any, error: Exception | None) -> None:
        """Send the response to a request, or the error response to its handler's exception."""
        self.end(work)
        go_on(work.context)
        if error is not None:
            response = failure(work.route, work.request, work.context, error)
        self._respond(work.event, work.route, response, work.context)

    def end(self, work: Work) -> None:
        """Remove a request whose response is about to be sent."""
        del self._works[work.connection]
        if work.held:
            self._in_work += 1

    async def _wait(self, work: Work, outcome: Awaitable[Any]) -> None:
        try:
            response = await outcome
        except Exception as error:  # noqa: BLE001  # every exception of a handler becomes an error response
            self.complete(work, None, error)
        else:
            self.complete(work, response, None)

    def _respond_unsupported(self, event: ControlRequest, context: Any) -> None:
        api, _served = self._dispatch.find(event)
        response = api.unsupported(context)
        if response is None:
            self.close(
                event,
                f"{api.name} version {event.api_version}: expected {api.min_version} to {api.max_version}",
            )
            return
        self._data_plane.respond(event.connection, event.request, response)
        self.free_slots(1)

    def _respond(self, event: ControlRequest, route: Route, response: Any, context: Any) -> None:
        """Send the response with its throttle time. `bytes` are sent unchanged, None closes the connection."""
        if response is None:
            self.close(event, f"{route.api.name} could not be answered")
            return
        throttle = 0 if context is None else throttle_time_ms(context)
        wait = 0 if context is None else context.wait_ms
        if not isinstance(response, bytes):
            try:
                if route.has_throttle_time:
                    wait = response.throttle_time_ms = max(throttle, response.throttle_time_ms)
                encoded = route.response.encode_within(response, route.version, LARGE_RESPONSE)
            except Exception:
                log.exception("%s: failed to encode the response", route.api.name)
                self.close(event, f"{route.api.name} could not be answered")
                return
            self._maybe_mute(event, wait, throttle)
            if encoded is None:
                self._begin_encoding(event, route, response)
                return
            response = route.prefix + encoded
        else:
            self._maybe_mute(event, wait, throttle)
        if self._draining and not (context is not None and context.ends_connection):
            self._responses.append((event, response))
            return
        is_last = context is not None and context.ends_connection
        self._data_plane.respond(event.connection, event.request, response, last=is_last)
        self.free_slots(1)

    def _maybe_mute(self, event: ControlRequest, wait_ms: int, muted_ms: int) -> None:
        """Mute a connection for its response's throttle time (KIP-219), if that is longer than the current one."""
        if wait_ms > muted_ms:
            mute(self._data_plane, event.connection, wait_ms)

    def _begin_encoding(self, event: ControlRequest, route: Route, response: Any) -> None:
        """Start a task that encodes a large response in a thread and sends it."""
        connection = event.connection
        work = self._works[connection] = Work(connection, event, route, None, None, None)
        self._large.begin_response(self, work, response)

    def close(self, event: ControlRequest, reason: str) -> None:
        """Close the connection of a request, and log why."""
        log.warning("closing connection from %s:%s: %s", event.peer_host, event.peer_port, reason)
        self._send_responses()  # Earlier responses must not be lost.
        self._data_plane.close_connection(event.connection)
        self.free_slots(1)

    def free_slots(self, count: int) -> None:
        """Free the slots of completed requests, and drain events again if no slot was free."""
        self._in_work -= count
        if not self._reading and self._in_work < self._max_in_work:
            self._watch()
        if not self._in_work and self._idle is not None:
            idle, self._idle = self._idle, None
            if not idle.done():  # `finish` may have been cancelled.
                idle.set_result(None)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until this pipeline stops."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
