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
from pybroker.protocol.codec import encode, schema_of
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.header import flexible, response_prefix, skip_tagged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pybroker.net.dispatch import Api, Dispatch
    from pybroker.net.native import DataPlane

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
_NO_TAGGED = b"\x00"


class _Way(NamedTuple):
    """How one version of an API is served."""

    api: Api
    decode: Callable[[bytes, int, int], tuple[Any, int]]
    """Of its requests."""
    version: int
    is_flexible: bool
    prefix: bytes
    """What precedes its responses."""


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
        drained: Callable[[], None] | None = None,
    ) -> None:
        """`drained` is called when a wake-up's events are all taken up, before their answers are sent."""
        self._data_plane = data_plane
        self._dispatch = dispatch
        # By key and version, as they are first asked for.
        self._ways: dict[tuple[int, int], _Way] = {}
        self._new_context = new_context
        self._decide = decide
        self._directory_failed = directory_failed
        self._segment_rolled = segment_rolled
        self._append_settled = append_settled
        self._max_in_work = max_in_work
        self._drained = drained
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading = False
        # Requests of a connection that wait behind one in work. Invariant: a key is here while a handler of that
        # connection waits, and only then.
        self._behind: dict[int, deque[ControlRequest] | None] = {}
        # Requests whose `Reply` this wake-up has brought, by connection.
        self._fresh: dict[int, ControlRequest] = {}
        # Connections whose `Reply` has outlasted its wake-up: it waits for what others do, so it takes no room, nor
        # does what waits behind it. Invariant: their requests are not counted in `_in_work`.
        self._held: set[int] = set()
        # Answers (connection, request, payload) that leave together. Invariant: empty unless `_draining`.
        self._answers: list[tuple[int, int, bytes]] = []
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
        try:
            for event in events:
                self._take_up(event)
            if self._drained is not None:
                self._drained()
        finally:
            self._draining = False
            self._send_answers()
            self._hold()

    def _send_answers(self) -> None:
        answers, self._answers = self._answers, []
        if answers:
            self._data_plane.respond_many(answers)
            self._settle(len(answers))

    def _hold(self) -> None:
        while self._fresh:
            connection, event = self._fresh.popitem()
            self._held.add(connection)
            held = [event, *(self._behind[connection] or ())]
            for one in held:
                self._data_plane.hold(connection, one.request)
            self._settle(len(held))

    def _take_up(self, event: Event) -> None:
        if isinstance(event, ControlRequest):
            connection = event.connection
            if connection in self._held:
                self._data_plane.hold(connection, event.request)
            else:
                self._in_work += 1
            if connection in self._behind:
                waiting = self._behind[connection]
                if waiting is None:
                    waiting = self._behind[connection] = deque()
                waiting.append(event)
            else:
                self._step_request(event, connection)
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
            way = self._way(event)
            if way is None:
                self._answer_unsupported(event, context)
                return
            body, start = event.body, 0
            if way.is_flexible:
                start = len(_NO_TAGGED) if body[:1] == _NO_TAGGED else skip_tagged(body)
            request, _size = way.decode(body, way.version, start)
        except (RefusedError, MalformedMessage) as error:
            self._close(event, str(error))
            return
        try:
            outcome = way.api.handle(request, context)
        except Exception as error:  # noqa: BLE001  # every failure of a handler is its client's answer
            self._respond(event, way, self._failure(way.api, request, context, error))
            return
        if type(outcome) is Reply:
            self._behind[connection] = None
            self._fresh[connection] = event
            outcome.hear(partial(self._told, event, connection, way, request, context))
            return
        if isinstance(outcome, bytes) or not hasattr(outcome, "__await__"):
            self._respond(event, way, outcome)
            return
        self._behind[connection] = None
        self._spawn(self._wait(event, connection, way, request, context, outcome))

    def _way(self, event: ControlRequest) -> _Way | None:
        """Return how a version of an API is served, None where it is not; raises RefusedError for an unknown API."""
        key = event.api_key, event.api_version
        way = self._ways.get(key)
        if way is None:
            api, served = self._dispatch.find(event)
            if served:
                decode = schema_of(api.request_type).decode
                way = self._ways[key] = _Way(api, decode, key[1], flexible(*key), response_prefix(*key))
        return way

    def _told(
        self,
        event: ControlRequest,
        connection: int,
        way: _Way,
        request: Any,
        context: Any,
        response: Any,
        error: Exception | None,
    ) -> None:
        if self._fresh.pop(connection, None) is None:
            self._held.discard(connection)
            self._in_work += 1 + len(self._behind[connection] or ())
        if error is not None:
            response = self._failure(way.api, request, context, error)
        self._respond(event, way, response)
        self._step_behind(connection)

    async def _wait(
        self, event: ControlRequest, connection: int, way: _Way, request: Any, context: Any, outcome: Awaitable[Any]
    ) -> None:
        try:
            response = await outcome
        except Exception as error:  # noqa: BLE001  # every failure of a handler is its client's answer
            response = self._failure(way.api, request, context, error)
        self._respond(event, way, response)
        self._step_behind(connection)

    def _step_behind(self, connection: int) -> None:
        """Go on with the requests of a connection that waited behind an answered one, up to the next that waits."""
        waiting = self._behind.pop(connection, None)
        while waiting:
            self._step_request(waiting.popleft(), connection)
            if connection in self._behind:
                self._behind[connection] = waiting or None
                return

    async def _step_undecided(self, event: UndecidedRequest) -> None:
        try:
            await self._decide(event)
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
                response = way.prefix + encode(response, way.version)
            except Exception:
                log.exception("%s: the response could not be encoded", way.api.name)
                self._close(event, f"{way.api.name} could not be answered")
                return
        if self._draining:
            self._answers.append((event.connection, event.request, response))
            return
        self._data_plane.respond(event.connection, event.request, response)
        self._settle(1)

    def _close(self, event: ControlRequest, reason: str) -> None:
        log.warning("closing connection from %s:%s: %s", event.peer_host, event.peer_port, reason)
        self._send_answers()  # Those that were before it are not lost.
        self._data_plane.close_connection(event.connection)
        self._settle(1)

    def _forget(self, connection: int) -> None:
        waiting = self._behind.get(connection)
        if waiting:
            if connection not in self._held:
                self._settle(len(waiting))
            waiting.clear()

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
