"""The way of a control request: event fd -> drain -> decode -> handle -> encode -> respond.

Owns draining, the order of requests within a connection, the bound on requests in work (`queued.max.requests`), and
what happens to a request that cannot be decoded or whose handler fails. Must not know what any request means. Runs on
the loop thread only.

A handler that answers at once is answered in place, without a task. One that returns a `Reply` has it told by whoever
decides, perhaps before the wake-up is over (`drained` lets them): then its answer leaves with the others, and there was
no task and no turn of the loop either. While one that waits is in work, later requests of the same connection wait
behind it, as in Kafka, where a connection is muted until its answer is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pybroker.machine.reply import Reply
from pybroker.net.dispatch import RefusedError
from pybroker.net.native import (
    AppendSettled,
    ConnectionClosed,
    ControlRequest,
    LogDirectoryFailed,
    LogLine,
    SegmentRolled,
    UndecidedRequest,
)
from pybroker.protocol.codec import schema_of
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.header import flexible, response_prefix
from pybroker.protocol.messages import response_class

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pybroker.net.dispatch import Api, Dispatch
    from pybroker.net.native import DataPlane
    from pybroker.protocol.native import Schema

    Event = (
        AppendSettled
        | ControlRequest
        | UndecidedRequest
        | ConnectionClosed
        | LogDirectoryFailed
        | LogLine
        | SegmentRolled
    )

log = logging.getLogger("pybroker.net")

_DRAIN_AT_ONCE = 256


class _Way(NamedTuple):
    """How one version of an API is served."""

    api: Api
    version: int
    request: Schema
    is_flexible: bool
    response: Schema
    prefix: bytes
    """What precedes its responses."""


class _Work(msgspec.Struct, eq=False):
    """A request whose handler has not answered yet: a struct, as one is made for each request of a busy coordinator."""

    connection: int
    event: ControlRequest
    way: _Way
    request: Any
    context: Any
    reply: Reply | None
    """What the handler has returned, as long as this wake-up may bring it; None when it is listened to, or awaited."""
    behind: deque[ControlRequest] | None = None
    """Requests of the same connection that wait for this one to be answered."""
    held: bool = False
    """Whether it has outlasted its wake-up: it waits for what others do, so it takes no room, nor does what waits
    behind it. Invariant: then they are not counted in `_in_work`."""


class Pipeline:
    """Takes up events and answers requests until it is stopped."""

    def __init__(
        self,
        data_plane: DataPlane,
        dispatch: Dispatch,
        *,
        new_context: Callable[[ControlRequest], Any],
        decide: Callable[[UndecidedRequest], Awaitable[None]],
        directory_failed: Callable[[LogDirectoryFailed], None],
        segment_rolled: Callable[[SegmentRolled], None],
        append_settled: Callable[[AppendSettled], None],
        max_in_work: int,
        draining: Callable[[], None],
        drained: Callable[[], None],
    ) -> None:
        """`draining` is called when a wake-up has brought events, `drained` when they are all taken up, before their
        answers are sent, and again when that lets others be taken up.
        """
        self._data_plane = data_plane
        self._dispatch = dispatch
        # By `ControlRequest.api`, as they are first asked for.
        self._ways: dict[int, _Way] = {}
        self._new_context = new_context
        self._decide = decide
        self._directory_failed = directory_failed
        self._segment_rolled = segment_rolled
        self._append_settled = append_settled
        self._max_in_work = max_in_work
        self._begin = draining
        self._drained = drained
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = False
        # By connection. Invariant: a key is here while a handler of that connection waits, and only then.
        self._works: dict[int, _Work] = {}
        # Those whose handlers have returned a `Reply` since the last wake-up ended.
        self._fresh: list[_Work] = []
        # Answers that leave together. Invariant: empty unless `_draining`.
        self._answers: list[tuple[ControlRequest, bytes]] = []
        self._draining = False
        # Invariant: requests drained and not yet answered, those that wait behind others included.
        self._in_work = 0
        self._tasks: set[asyncio.Task[None]] = set()
        # Told when nothing is in work; None while nobody waits for that.
        self._idle: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Begin to take up events on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._watch()

    async def finish(self) -> None:
        """Wait until every request that was taken up is answered."""
        if self._in_work:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def stop(self) -> None:
        """Take up no more events."""
        if self._reading and self._loop is not None:
            self._loop.remove_reader(self._data_plane.event_fd)
        self._reading = False
        self._loop = None
        for task in self._tasks:
            task.cancel()

    def _watch(self) -> None:
        if self._loop is not None and not self._reading:
            self._loop.add_reader(self._data_plane.event_fd, self._drain)
            self._reading = True

    def _drain(self) -> None:
        while self._loop is not None:
            room = self._max_in_work - self._in_work
            if room <= 0:
                # What is not drained waits in the data plane; _settle watches again as soon as there is room.
                self._loop.remove_reader(self._data_plane.event_fd)
                self._reading = False
                return
            limit = min(room, _DRAIN_AT_ONCE)
            events = self._data_plane.drain(limit)
            self._step_events(events)
            if len(events) < limit:
                return

    def _step_events(self, events: Sequence[Event]) -> None:
        self._draining = True
        self._begin()
        try:
            try:
                for event in events:
                    self._take_up(event)
            finally:  # `draining` was told that this follows: nobody else steps what was taken up.
                self._decide_all()
        finally:
            self._draining = False
            self._send_answers()
            self._hold()

    def _decide_all(self) -> None:
        """Let what the wake-up has brought be decided, and answer what is: also requests that waited behind others."""
        while True:
            self._drained()
            fresh, self._fresh = self._fresh, []
            waiting = []
            for work in fresh:
                reply = work.reply
                if reply is None or not reply.told:
                    waiting.append(work)
                else:
                    self._told(work, reply.value, reply.error)
            settled = not self._fresh
            self._fresh += waiting
            if settled:
                return

    def _send_answers(self) -> None:
        answers, self._answers = self._answers, []
        if not answers:
            return
        if len(answers) == 1:
            ((event, payload),) = answers
            self._data_plane.respond(event.connection, event.request, payload)
        else:
            self._data_plane.respond_many(answers)
        self._settle(len(answers))

    def _hold(self) -> None:
        """Listen for the replies that the wake-up has not brought, and count their requests no longer."""
        fresh, self._fresh = self._fresh, []
        for work in fresh:
            self._listen(work)
            if self._works.get(work.connection) is not work:
                continue  # It was answered.
            work.held = True
            held = [work.event, *(work.behind or ())]
            for one in held:
                self._data_plane.hold(work.connection, one.request)
            self._settle(len(held))

    def _listen(self, work: _Work) -> None:
        reply, work.reply = work.reply, None
        if reply is not None:
            reply.hear(partial(self._told, work))

    def _take_up(self, event: Event) -> None:
        if isinstance(event, ControlRequest):
            connection = event.connection
            work = self._works.get(connection)
            if work is None:
                self._in_work += 1
                self._step_request(event, connection)
                return
            if work.held:
                self._data_plane.hold(connection, event.request)
            else:
                self._in_work += 1
            if work.behind is None:
                work.behind = deque()
            work.behind.append(event)
        elif isinstance(event, AppendSettled):
            self._append_settled(event)
        elif isinstance(event, UndecidedRequest):
            self._in_work += 1
            self._spawn(self._step_undecided(event))
        elif isinstance(event, ConnectionClosed):
            self._forget(event.connection)
        elif isinstance(event, LogLine):
            log.log(logging.getLevelNamesMapping().get(event.level.upper(), logging.WARNING), "%s", event.text)
        elif isinstance(event, SegmentRolled):
            self._segment_rolled(event)
        else:
            self._directory_failed(event)

    def _step_request(self, event: ControlRequest, connection: int) -> None:
        """Answer a request in place, or leave a task behind that will."""
        context = self._new_context(event)
        try:
            way = self._ways.get(event.api) or self._new_way(event)
            if way is None:
                self._answer_unsupported(event, context)
                return
            request = event.decode(way.request, way.is_flexible)
        except (RefusedError, MalformedMessage) as error:
            self._close(event, str(error))
            return
        try:
            outcome = way.api.handle(request, context)
        except Exception as error:  # noqa: BLE001  # every failure of a handler is its client's answer
            self._respond(event, way, self._failure(way.api, request, context, error))
            return
        if type(outcome) is Reply:
            work = self._works[connection] = _Work(connection, event, way, request, context, outcome)
            self._fresh.append(work)
            if not self._draining:
                self._listen(work)
            return
        if isinstance(outcome, bytes) or not hasattr(outcome, "__await__"):
            self._respond(event, way, outcome)
            return
        work = self._works[connection] = _Work(connection, event, way, request, context, None)
        self._spawn(self._wait(work, outcome))

    def _new_way(self, event: ControlRequest) -> _Way | None:
        """Return how a version of an API is served, None where it is not; raises RefusedError for an unknown API."""
        api, served = self._dispatch.find(event)
        if not served:
            return None
        key, version = event.api_key, event.api_version
        request, response = schema_of(api.request_type), schema_of(response_class(key))
        way = _Way(api, version, request, flexible(key, version), response, response_prefix(key, version))
        self._ways[event.api] = way
        return way

    def _told(self, work: _Work, response: Any, error: Exception | None) -> None:
        connection = work.connection
        del self._works[connection]
        if work.held:
            self._in_work += 1 + len(work.behind or ())
        if error is not None:
            response = self._failure(work.way.api, work.request, work.context, error)
        self._respond(work.event, work.way, response)
        if work.behind:
            self._step_behind(connection, work.behind)

    async def _wait(self, work: _Work, outcome: Awaitable[Any]) -> None:
        try:
            response = await outcome
        except Exception as error:  # noqa: BLE001  # every failure of a handler is its client's answer
            self._told(work, None, error)
        else:
            self._told(work, response, None)

    def _step_behind(self, connection: int, waiting: deque[ControlRequest]) -> None:
        """Go on with the requests of a connection that waited behind an answered one, up to the next that waits."""
        while waiting:
            self._step_request(waiting.popleft(), connection)
            work = self._works.get(connection)
            if work is not None:
                work.behind = waiting
                return

    async def _step_undecided(self, event: UndecidedRequest) -> None:
        try:
            await self._decide(event)
        except Exception:
            # The data plane answers by its table, which lacks the topics: an error after which clients try again.
            log.exception("a request for the topics %s could not be decided about", ", ".join(event.topics))
        finally:
            self._data_plane.take_up(event.connection, event.request)
            self._settle(1)

    def _failure(self, api: Api, request: Any, context: Any, error: Exception) -> Any:
        try:
            return api.failed(request, context, error)
        except Exception:
            log.exception("%s: no answer could be made of an error", api.name)
            return None

    def _answer_unsupported(self, event: ControlRequest, context: Any) -> None:
        api, _served = self._dispatch.find(event)
        answer = api.unsupported(context)
        if answer is None:
            self._close(
                event,
                f"{api.name} version {event.api_version}: expected {api.min_version} to {api.max_version}",
            )
            return
        self._data_plane.respond(event.connection, event.request, answer)
        self._settle(1)

    def _respond(self, event: ControlRequest, way: _Way, response: Any) -> None:
        """Send the response; `bytes` go as they are, None closes the connection."""
        if response is None:
            self._close(event, f"{way.api.name} could not be answered")
            return
        if not isinstance(response, bytes):
            try:
                response = way.prefix + way.response.encode(response, way.version)
            except Exception:
                log.exception("%s: the response could not be encoded", way.api.name)
                self._close(event, f"{way.api.name} could not be answered")
                return
        if self._draining:
            self._answers.append((event, response))
            return
        self._data_plane.respond(event.connection, event.request, response)
        self._settle(1)

    def _close(self, event: ControlRequest, reason: str) -> None:
        log.warning("closing connection from %s:%s: %s", event.peer_host, event.peer_port, reason)
        self._send_answers()  # Those that were before it are not lost.
        self._data_plane.close_connection(event.connection)
        self._settle(1)

    def _forget(self, connection: int) -> None:
        work = self._works.get(connection)
        if work is not None and work.behind:
            if not work.held:
                self._settle(len(work.behind))
            work.behind.clear()

    def _settle(self, count: int) -> None:
        self._in_work -= count
        if not self._reading and self._in_work < self._max_in_work:
            self._watch()
        if not self._in_work and self._idle is not None:
            idle, self._idle = self._idle, None
            if not idle.done():  # Whoever waited may have given up.
                idle.set_result(None)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
