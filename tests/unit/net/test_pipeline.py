from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pybroker.machine.reply import Reply
from pybroker.net import pipeline
from pybroker.net.dispatch import Dispatch
from pybroker.net.events import EventTable, log_line
from pybroker.net.rights import Authorization
from pybroker.net.unresolved import UnresolvedRequests
from pybroker.net.verification import query_none, query_none_here
from pybroker.net.work import build_route
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import TooManyElements
from pybroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pybroker.protocol.native import Schema


@dataclass
class Request:
    connection: int
    request: int
    api_key: int = 18
    api_version: int = 0
    client_id: str | None = None
    listener: str = "PLAINTEXT"
    peer_host: str = "peer"
    peer_port: int = 1
    principal: tuple[str, str] | None = None
    body: bytes = b""
    ends_connection: bool = False
    time: None = None
    wait_ms: int = 0

    @property
    def api(self) -> int:
        return self.api_key << 16 | self.api_version

    @property
    def size(self) -> int:
        return len(self.body)

    def wait(self) -> None:
        """Note that it waits, which the data plane alone looks at."""

    def decode(self, schema: Schema, flexible: bool, max_elements: int) -> object:
        if len(self.body) > max_elements:
            raise TooManyElements(f"more than {max_elements} elements")
        return schema.decode(self.body, self.api_version, 1 if flexible else 0)[0]


@dataclass
class Unresolved:
    connection: int
    request: int
    topics: tuple[str, ...] = ("lacking",)
    transaction: None = None


@dataclass
class Closed:
    connection: int


@dataclass
class Completed:
    ticket: int


@dataclass
class Line:
    level: str
    text: str


@dataclass
class Failed:
    directory: str
    error: str


class DataPlane:
    """What the pipeline uses of the data plane: a queue of events below, a list of what was done above."""

    def __init__(self) -> None:
        self.event_fd = os.eventfd(0, os.EFD_NONBLOCK)
        self._events: deque[Any] = deque()
        self.done: list[tuple[Any, ...]] = []
        self.drained: list[int] = []

    def happen(self, *events: Any) -> None:
        self._events.extend(events)
        os.eventfd_write(self.event_fd, 1)

    def drain(self, limit: int) -> list[Any]:
        taken = [self._events.popleft() for _ in range(min(limit, len(self._events)))]
        if not self._events:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self.event_fd)
        self.drained.append(len(taken))
        return taken

    def respond(self, connection: int, request: int, payload: bytes, *, last: bool = False) -> None:
        self.done.append(("respond last" if last else "respond", connection, request, payload))

    def respond_many(self, responses: list[tuple[Request, bytes]]) -> None:
        for request, payload in responses:
            self.respond(request.connection, request.request, payload)

    def hold(self, connection: int, request: int) -> None:
        self.done.append(("hold", connection, request))

    def retry(
        self, connection: int, request: int, allowed: list[str | bytes], version: int, transactional_id: bool
    ) -> None:
        self.done.append(("retry", connection, request, allowed, version, transactional_id))

    def close_connection(self, connection: int) -> None:
        self.done.append(("close", connection))

    def responded(self) -> list[tuple[int, int]]:
        return [(one[1], one[2]) for one in self.done if one[0] == "respond"]


@dataclass
class Api:
    """ApiVersions, with an answer of the test's."""

    response: Callable[[Any], Any]
    name: str = "ApiVersions"
    min_version: int = 0
    max_version: int = 2
    request_type: type[Any] = ApiVersionsRequest
    forwarded: bool = False
    failures: list[Exception] = field(default_factory=list)
    fallback: bytes | None = None

    def prepare(self, request: Any, context: Any) -> None:
        return None

    def handle(self, request: Any, context: Any) -> Any:
        return self.response(context)

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        self.failures.append(error)
        return ApiVersionsResponse(error_code=-1)

    def unsupported(self, context: Any) -> bytes | None:
        return self.fallback


@pytest.fixture(autouse=True)
def _own_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "ControlRequest", Request)
    monkeypatch.setattr(pipeline, "ConnectionClosed", Closed)
    monkeypatch.setattr(
        pipeline, "mute", lambda plane, connection, wait_ms: plane.done.append(("mute", connection, wait_ms))
    )


class Contexts:
    """The event is its own context."""

    def build(self, origin: Any) -> Any:
        return origin


class Running:
    """A pipeline over a data plane of the test's."""

    def __init__(self, api: Api, *, max_in_work: int = 10, max_elements: int = 1_000_000) -> None:
        self.now = 0.0
        self.data_plane = DataPlane()
        self.decided: list[Any] = []
        self.failed: list[Any] = []
        self.completed: list[Any] = []
        self.events = EventTable()
        unresolved = UnresolvedRequests(
            self.data_plane,  # type: ignore[arg-type]
            self._decide,
            query_none_here,
            query_none,
        )
        on: Callable[[type, Callable[[Any], object]], None] = self.events.on
        on(Unresolved, unresolved.handle)
        on(Failed, self.failed.append)
        on(Completed, self.completed.append)
        on(Line, log_line)
        self.events.around_batches(lambda: None, self._drained)
        self.pipeline = pipeline.Pipeline(
            self.data_plane,  # type: ignore[arg-type]
            Dispatch({18: api}),
            Contexts(),
            self.events,
            pipeline.Limits(max_in_work, max_elements, clock=lambda: self.now),
        )
        self.deciding: Exception | None = None
        self.may_decide = asyncio.Event()
        self.may_decide.set()
        self.when_drained: list[Callable[[], None]] = []

    def _drained(self) -> None:
        for call in self.when_drained:
            call()

    async def _decide(self, event: Any) -> Authorization:
        self.decided.append(event)
        await self.may_decide.wait()
        if self.deciding is not None:
            raise self.deciding
        return Authorization(["mine"], 7)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                turned = asyncio.get_running_loop().create_future()
                asyncio.get_running_loop().call_soon(turned.set_result, None)
                await turned


def respond(_context: Any) -> ApiVersionsResponse:
    return ApiVersionsResponse()


EMPTY = encode(ApiVersionsResponse(), 0)


async def test_a_request_is_answered_in_place() -> None:
    running = Running(Api(respond))
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1))
    await running.until(lambda: bool(running.data_plane.done))
    assert running.data_plane.done == [("respond", 1, 1, EMPTY)]


async def test_no_more_is_taken_up_than_may_be_in_work() -> None:
    gate = asyncio.Event()

    async def wait() -> ApiVersionsResponse:
        await gate.wait()
        return ApiVersionsResponse()

    running = Running(Api(lambda _: wait()), max_in_work=2)
    running.pipeline.start()
    running.data_plane.happen(*(Request(connection, 1) for connection in range(5)))
    await running.until(lambda: bool(running.data_plane.drained))
    assert sum(running.data_plane.drained) == 2
    gate.set()
    await running.until(lambda: len(running.data_plane.done) == 5)
    assert sum(running.data_plane.drained) == 5


@pytest.mark.parametrize("when", ["at once", "later"])
async def test_a_handler_that_fails_is_answered_with_an_error(when: str) -> None:
    async def fail_later() -> None:
        raise ValueError("wrong")

    def fail(_context: Any) -> Any:
        if when == "later":
            return fail_later()
        raise ValueError("wrong")

    api = Api(fail)
    running = Running(api)
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1))
    await running.until(lambda: bool(running.data_plane.done))
    (done,) = running.data_plane.done
    assert decode(ApiVersionsResponse, done[3], 0)[0].error_code == -1
    assert [str(error) for error in api.failures] == ["wrong"]


async def test_a_body_that_cannot_be_read_closes_its_connection_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    running = Running(Api(respond, max_version=3))
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1, api_version=3, body=b"\x00\x7f"))
    await running.until(lambda: bool(running.data_plane.done))
    assert running.data_plane.done == [("close", 1)]
    assert len(caplog.records) == 1
    assert "closing connection from peer:1" in caplog.text


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "Too many open files"), ModuleNotFoundError("No module named 'x'")]
)
async def test_a_handler_that_cannot_be_read_now_is_read_for_the_next_request(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def read(*arguments: Any) -> Any:
        if reads.pop():
            raise error
        return build_route(*arguments)

    reads = [False, True]
    monkeypatch.setattr(pipeline, "build_route", read)
    running = Running(Api(respond))
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1), Request(2, 1))
    await running.until(lambda: len(running.data_plane.done) == 2)
    assert running.data_plane.done == [("close", 1), ("respond", 2, 1, EMPTY)]
    assert f"ApiVersions cannot be served now: {error}" in caplog.text


@pytest.mark.parametrize(
    ("event", "fallback", "done"),
    [
        (Request(1, 1, api_version=9), None, ("close", 1)),
        (Request(1, 1, api_version=9), b"v0", ("respond", 1, 1, b"v0")),
        (Request(1, 1, api_key=77), b"v0", ("close", 1)),
    ],
)
async def test_what_is_not_served_closes_the_connection_unless_the_api_has_an_answer(
    event: Request, fallback: bytes | None, done: tuple[Any, ...]
) -> None:
    running = Running(Api(respond, fallback=fallback))
    running.pipeline.start()
    running.data_plane.happen(event)
    await running.until(lambda: bool(running.data_plane.done))
    assert running.data_plane.done == [done]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_every_answer_says_how_long_its_client_is_to_wait(
    monkeypatch: pytest.MonkeyPatch, large: bool, fails: bool
) -> None:
    monkeypatch.setattr(pipeline, "throttle_time_ms", lambda client: 100 + client.connection)
    if large:
        monkeypatch.setattr(pipeline, "LARGE_RESPONSE", 0)

    def handle(_context: Any) -> ApiVersionsResponse:
        if fails:
            raise ValueError("wrong")
        return ApiVersionsResponse()

    running = Running(Api(handle))
    running.pipeline.start()
    running.data_plane.happen(Request(7, 1, api_version=1), Request(8, 1, api_version=0))
    await running.until(lambda: len(running.data_plane.done) == 2)
    responses = {done[1]: done[3] for done in running.data_plane.done}
    assert decode(ApiVersionsResponse, responses[7], 1)[0].throttle_time_ms == 107
    assert decode(ApiVersionsResponse, responses[8], 0)[0].throttle_time_ms == 0, "the version has no room for it"


@pytest.mark.parametrize("large", [False, True])
async def test_a_connection_waits_as_long_as_a_handlers_answer_says_whatever_the_version(
    monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """What the request's own quota has muted the data plane for is not muted twice."""
    monkeypatch.setattr(pipeline, "throttle_time_ms", lambda client: {7: 0, 8: 0, 9: 500}[client.connection])
    if large:
        monkeypatch.setattr(pipeline, "LARGE_RESPONSE", 0)
    running = Running(Api(lambda _: ApiVersionsResponse(throttle_time_ms=300)))
    running.pipeline.start()
    running.data_plane.happen(Request(7, 1, api_version=1), Request(8, 1, api_version=0), Request(9, 1, api_version=1))
    await running.until(lambda: len(running.data_plane.responded()) == 3)
    done = [one[:3] for one in running.data_plane.done]
    assert {one for one in done if one[0] == "mute"} == {("mute", 7, 300), ("mute", 8, 300)}
    assert done.index(("mute", 7, 300)) < done.index(("respond", 7, 1)), "it is muted before its client knows"


async def test_a_connection_waits_as_long_as_another_nodes_answer_says() -> None:
    def handle(context: Any) -> bytes:
        context.wait_ms = 300 if context.connection == 7 else 0
        return b"as it is"

    running = Running(Api(handle))
    running.pipeline.start()
    running.data_plane.happen(Request(7, 1), Request(8, 1))
    await running.until(lambda: len(running.data_plane.responded()) == 2)
    assert [one for one in running.data_plane.done if one[0] == "mute"] == [("mute", 7, 300)]


@pytest.mark.parametrize("size", ["small", "large"])
async def test_requests_are_counted_by_version_and_the_log_says_so_at_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, size: str
) -> None:
    if size == "large":
        monkeypatch.setattr(pipeline, "LARGE_REQUEST", -1)
    caplog.set_level("INFO", "pybroker.net")

    def handle(context: Any) -> ApiVersionsResponse:
        if context.connection == 3:
            raise ValueError("wrong")
        return ApiVersionsResponse()

    running = Running(Api(handle))
    running.pipeline.start()
    running.data_plane.happen(*(Request(number, 1, api_version=number // 2) for number in range(4)))
    await running.until(lambda: len(running.data_plane.responded()) == 4)
    running.pipeline.stop()
    assert caplog.messages == ["Requests processed in the control plane: ApiVersions v0 2, ApiVersions v1 2 (1 failed)"]


async def test_a_pipeline_without_requests_says_nothing_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pybroker.net")
    running = Running(Api(respond))
    running.pipeline.start()
    running.pipeline.stop()
    assert caplog.messages == []


async def test_a_response_that_cannot_be_encoded_closes_the_connection() -> None:
    running = Running(Api(lambda _: ApiVersionsResponse(error_code=10**9)))
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1))
    await running.until(lambda: bool(running.data_plane.done))
    assert running.data_plane.done == [("close", 1)]


async def test_an_unresolved_request_is_taken_up_again_when_it_is_decided() -> None:
    running = Running(Api(respond))
    running.pipeline.start()
    running.data_plane.happen(Unresolved(1, 5))
    await running.until(lambda: bool(running.data_plane.done))
    assert running.data_plane.done == [("retry", 1, 5, ["mine"], 7, False)]
    assert running.decided == [Unresolved(1, 5)]


async def test_requests_that_wait_for_a_topics_logs_leave_the_others_their_room() -> None:
    running = Running(Api(respond), max_in_work=2)
    running.may_decide.clear()
    running.pipeline.start()
    running.data_plane.happen(*(Unresolved(connection, 1) for connection in range(5)), Request(9, 1))
    await running.until(lambda: bool(running.data_plane.done))
    assert running.data_plane.done == [("respond", 9, 1, EMPTY)]
    running.may_decide.set()
    await running.until(lambda: len(running.data_plane.done) == 6)
    assert [one[1] for one in running.data_plane.done[1:]] == [0, 1, 2, 3, 4]


async def test_what_was_taken_up_is_stepped_although_an_event_after_it_failed() -> None:
    running = Running(Api(respond))
    stepped: list[int] = []
    running.when_drained.append(lambda: stepped.append(len(running.completed)))

    def fail(_event: Any) -> None:
        raise RuntimeError("a fault")

    running.events.on(Failed, fail)
    events: list[Any] = [Completed(7), Failed("d", "EIO")]
    with pytest.raises(RuntimeError, match="a fault"):
        running.pipeline._step_events(events)
    assert stepped == [1]


async def test_a_request_that_nobody_can_decide_about_is_answered_and_the_reason_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    running = Running(Api(respond))
    running.deciding = RuntimeError("no image")
    running.pipeline.start()
    running.data_plane.happen(Unresolved(1, 5), Unresolved(2, 1))
    await running.until(lambda: len(running.data_plane.done) == 2)
    await running.pipeline.finish()
    assert running.data_plane.done == [("retry", 1, 5, [], 0, False), ("retry", 2, 1, [], 0, False)]
    words = "Failed to resolve a request for the topics lacking"
    logged = [record for record in caplog.records if record.getMessage() == words]
    assert len(logged) == 2
    assert all(record.exc_info is not None for record in logged)
    running.deciding = None
    running.data_plane.happen(Unresolved(1, 6))
    await running.until(lambda: len(running.data_plane.done) == 3)


async def test_what_is_no_request_reaches_whom_it_concerns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    running = Running(Api(respond))
    running.pipeline.start()
    running.data_plane.happen(Line("warning", "a frame was too long"), Completed(7), Failed("/d", "gone"))
    await running.until(lambda: bool(running.failed))
    assert running.failed == [Failed("/d", "gone")]
    assert running.completed == [Completed(7)]
    assert [(record.levelname, record.message) for record in caplog.records] == [("WARNING", "a frame was too long")]


async def test_replies_that_are_set_within_the_wake_up_leave_together() -> None:
    replies: list[Reply] = []

    def later(_context: Any) -> Reply:
        replies.append(Reply())
        return replies[-1]

    running = Running(Api(later))

    def set_all() -> None:
        while replies:
            replies.pop()(ApiVersionsResponse(), None)

    running.when_drained.append(set_all)
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1), Request(2, 2), Request(3, 1))
    await running.pipeline.finish()
    await running.until(lambda: len(running.data_plane.done) == 3)
    assert sorted(running.data_plane.responded()) == [(1, 1), (2, 2), (3, 1)]
    assert [one[0] for one in running.data_plane.done] == ["respond"] * 3


async def test_a_reply_that_outlasts_the_wake_up_is_held_and_takes_no_room() -> None:
    replies: dict[int, Reply] = {}

    def later(context: Any) -> Any:
        if context.request == 9:
            return ApiVersionsResponse()
        return replies.setdefault(context.connection, Reply())

    running = Running(Api(later), max_in_work=1)
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1))
    await running.until(lambda: bool(running.data_plane.done))
    running.data_plane.happen(Request(2, 1), Request(3, 9))
    await running.until(lambda: (3, 9) in running.data_plane.responded())
    held = sorted(one for one in running.data_plane.done if one[0] == "hold")
    assert held == [("hold", 1, 1), ("hold", 2, 1)]
    assert running.data_plane.responded() == [(3, 9)]
    replies[1](ApiVersionsResponse(), None)
    assert running.data_plane.responded() == [(3, 9), (1, 1)]
    replies[2](None, ValueError("no"))
    await running.pipeline.finish()
    assert running.data_plane.responded()[-1] == (2, 1)


async def test_a_connection_that_its_answer_ends_is_closed_behind_it() -> None:
    running = Running(Api(respond))
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1), Request(2, 1, ends_connection=True), Request(3, 1))
    done = running.data_plane.done
    await running.until(lambda: len(done) == 3)
    assert [one for one in done if one[1] == 2] == [("respond last", 2, 1, EMPTY)]
    assert [one[0] for one in done].count("close") == 0


async def test_answers_before_a_malformed_request_are_sent_before_its_connection_is_closed() -> None:
    running = Running(Api(respond))
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1), Request(1, 2, api_key=99))
    await running.until(lambda: len(running.data_plane.done) == 2)
    assert [one[0] for one in running.data_plane.done] == ["respond", "close"]


async def test_a_wake_up_ends_after_its_slice_and_the_loop_goes_on_before_the_rest_is_served() -> None:
    begun: list[tuple[str, int]] = []

    def expensive(context: Any) -> ApiVersionsResponse:
        running.now += 0.003
        begun.append(("request", context.connection))
        return ApiVersionsResponse()

    running = Running(Api(expensive))
    running.pipeline.start()
    running.data_plane.happen(*(Request(connection, 1) for connection in range(12)))
    await running.until(lambda: bool(begun))
    asyncio.get_running_loop().call_soon(begun.append, ("other work", 0))
    await running.pipeline.finish()
    assert begun.index(("other work", 0)) < 12
    assert sorted(running.data_plane.responded()) == [(connection, 1) for connection in range(12)]


async def test_a_newcomer_is_served_before_a_hundred_connections_with_expensive_requests() -> None:
    """The issue's storm: each connection asks again as soon as it is answered, 23 ms a request."""
    served: list[int] = []

    def work(context: Any) -> ApiVersionsResponse:
        running.now += 0.023 if context.connection < 100 else 0.0001
        served.append(context.connection)
        if context.connection < 100 and len(served) < 300:
            running.data_plane.happen(Request(context.connection, context.request + 1))
        if len(served) == 150:
            running.data_plane.happen(Request(1000, 1, api_version=1))
        return ApiVersionsResponse()

    running = Running(Api(work), max_in_work=500)
    running.pipeline.start()
    running.data_plane.happen(*(Request(connection, 1) for connection in range(100)))
    await running.until(lambda: len(served) >= 300)
    assert served.index(1000) <= 152, "nobody but what was being served comes before the newcomer"
    heavy = [connection for connection in served if connection < 100]
    assert sorted(heavy[:100]) == list(range(100)), "each of the others has its turn before one has two"
    assert max(heavy[:200].count(connection) for connection in range(100)) == 2
    await running.pipeline.finish()


LARGE = b"\0" * 10


async def test_a_large_request_is_decoded_outside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LARGE_REQUEST", len(LARGE) - 1)
    threads: list[str] = []
    decode_here = Request.decode

    def decode_noting_the_thread(request: Request, *how: Any) -> object:
        threads.append(threading.current_thread().name)
        return decode_here(request, *how)

    monkeypatch.setattr(Request, "decode", decode_noting_the_thread)
    running = Running(Api(respond))
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1, body=LARGE), Request(2, 1))
    await running.until(lambda: len(running.data_plane.responded()) == 2)
    assert running.data_plane.responded() == [(2, 1), (1, 1)]
    # It takes no room among the requests in work while it waits for those before it.
    assert [one for one in running.data_plane.done if one[0] == "hold"] == [("hold", 1, 1)]
    main = threading.current_thread().name
    assert [name == main for name in threads] == [True, False]
    assert running.pipeline._in_work == 0


async def test_large_requests_are_worked_on_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LARGE_REQUEST", len(LARGE) - 1)
    gate, begun = asyncio.Event(), list[int]()

    async def wait(context: Request) -> ApiVersionsResponse:
        begun.append(context.connection)
        await gate.wait()
        return ApiVersionsResponse()

    running = Running(Api(wait))
    running.pipeline.start()
    running.data_plane.happen(*(Request(connection, 1, body=LARGE) for connection in (1, 2, 3)))
    await running.until(lambda: bool(begun))
    running.data_plane.happen(Closed(2))
    await running.until(lambda: running.pipeline._works[2].removed)
    assert begun == [1]
    gate.set()
    await running.until(lambda: len(running.data_plane.responded()) == 2)
    # Nobody works for a connection that is closed.
    assert begun == [1, 3]
    assert running.pipeline._in_work == 0


async def test_a_request_with_too_many_elements_closes_its_connection_and_names_the_setting(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "LARGE_REQUEST", len(LARGE) - 1)
    running = Running(Api(respond), max_elements=5)
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1, body=LARGE[:6]), Request(2, 1, body=LARGE))
    await running.until(lambda: len(running.data_plane.done) == 3)
    assert [one for one in running.data_plane.done if one[0] == "close"] == [("close", 1), ("close", 2)]
    assert caplog.text.count("socket.request.max.elements=5") == 2
    assert running.pipeline._in_work == 0


async def test_a_large_answer_is_encoded_outside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LARGE_RESPONSE", 1)
    running = Running(Api(respond))
    running.pipeline.start()
    running.data_plane.happen(Request(1, 1), Request(2, 1))
    await running.until(lambda: len(running.data_plane.done) == 2)
    assert sorted(running.data_plane.done) == [("respond", 1, 1, EMPTY), ("respond", 2, 1, EMPTY)]
    assert running.pipeline._in_work == 0
