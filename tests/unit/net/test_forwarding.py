from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from pybroker.controller.errors import (
    ControllerError,
    ControllerTimeoutError,
    NotControllerError,
    UnforwardableError,
    UnservedByControllerError,
)
from pybroker.machine.reply import Reply
from pybroker.net.forwarding import Forwarding
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import RequestHeader
from pybroker.protocol.messages.create_partitions import CreatePartitionsRequest
from pybroker.protocol.messages.default_principal_data import DefaultPrincipalData
from pybroker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from pybroker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from pybroker.security.principals import Principal

ALICE = Principal("User", "alice")
KEY, VERSION = 20, 6
REQUEST = DeleteTopicsRequest(topic_names=[], timeout_ms=0)
MESSAGE = b"\x00" + encode(REQUEST, VERSION)


@dataclass
class Origin:
    api_key: int = KEY
    api_version: int = VERSION
    correlation_id: int = 7
    client_id: str | None = "me"
    peer_host: str = "10.1.2.3"
    message: bytes = MESSAGE

    @property
    def size(self) -> int:
        return len(self.message)


@dataclass
class Context:
    origin: Origin = field(default_factory=Origin)
    principal: Principal = ALICE
    by_token: bool = False
    wait_ms: int = 0


class Prepared(NamedTuple):
    """What this node leaves of a request."""

    request: Any
    complete: Callable[[Any], Any]


class Api:
    """An API that the active controller decides."""

    name = "DeleteTopics"
    min_version = 1
    max_version = VERSION
    request_type = DeleteTopicsRequest

    def __init__(self, *, forwarded: bool = True) -> None:
        self.forwarded = forwarded
        self.outcome: Callable[[], Any] = lambda: b"here"
        self.prepared: Prepared | None = None

    def prepare(self, _request: Any, _context: Any) -> Prepared | None:
        return self.prepared

    def handle(self, _request: Any, _context: Any) -> Any:
        return self.outcome()

    def failed(self, *_: Any) -> Any:
        return None

    def unsupported(self, _context: Any) -> bytes | None:
        return None


class Node:
    """A broker whose node leads the quorum, or does not."""

    def __init__(self, *, leads: bool = False) -> None:
        self.leads = leads
        self.sent: list[tuple[EnvelopeRequest, int]] = []
        self.response: EnvelopeResponse | Exception = EnvelopeResponse(response_data=b"\0\0\0\7there")
        self.responded = asyncio.Event()
        self.responded.set()
        self.published: list[int] = []
        self.in_force = asyncio.Event()
        self.in_force.set()
        self.forwarding = Forwarding(self, lambda: self.leads, self._publish, max_request_bytes=10_000)
        self.api = Api()

    async def send(
        self, request: EnvelopeRequest, response: type[EnvelopeResponse], *, timeout_ms: int
    ) -> EnvelopeResponse:
        self.sent.append((request, timeout_ms))
        await self.responded.wait()
        if isinstance(self.response, Exception):
            raise self.response
        return self.response

    async def _publish(self, offset: int) -> None:
        self.published.append(offset)
        await self.in_force.wait()

    def serve(self, request: Any = REQUEST, context: Context | None = None) -> Any:
        """What the pipeline gets of the API in the place of the handler's."""
        return self.forwarding.apply({KEY: self.api})[KEY].handle(request, context or Context())


async def test_a_request_goes_to_the_controller_as_it_came_and_with_who_it_is_from() -> None:
    node = Node()
    outcome = node.serve()
    assert type(outcome) is Reply, "so that it takes no room among requests in work"
    assert await outcome == b"there", "what follows the correlation id, as the controller wrote it"
    ((envelope, timeout_ms),) = node.sent
    header, start = decode(RequestHeader, envelope.request_data, 1)
    assert (header.request_api_key, header.request_api_version, header.correlation_id) == (KEY, VERSION, 7)
    assert header.client_id == "me"
    assert envelope.request_data[start:] == MESSAGE
    assert envelope.request_principal is not None
    assert envelope.request_principal[:2] == b"\0\0"
    principal, _ = decode(DefaultPrincipalData, envelope.request_principal, 0, 2)
    assert (principal.type, principal.name) == ("User", "alice")
    assert envelope.client_host_address == bytes([10, 1, 2, 3])
    assert timeout_ms == 60_000


async def test_what_this_node_has_judged_is_left_out_and_the_answer_completed() -> None:
    node = Node()
    rest = DeleteTopicsRequest(topics=[DeleteTopicState(name="left")], timeout_ms=0)
    response = DeleteTopicsResponse(responses=[DeletableTopicResult(name="left", error_code=3)])
    node.response = EnvelopeResponse(response_data=b"\0\0\0\7\0" + encode(response, VERSION))
    node.api.prepared = Prepared(rest, lambda reply: [topic.name for topic in reply.responses])
    assert await node.serve() == ["left"]
    ((envelope, _),) = node.sent
    _, start = decode(RequestHeader, envelope.request_data, 1)
    assert envelope.request_data[start:] == b"\x00" + encode(rest, VERSION)


@pytest.mark.parametrize("version", [1, VERSION])
async def test_a_client_waits_here_as_long_as_the_controllers_answer_says(version: int) -> None:
    """The bytes of the answer are left as they are."""
    node = Node()
    head = b"\0" if version == VERSION else b""
    payload = head + encode(DeleteTopicsResponse(throttle_time_ms=1234), version)
    node.response = EnvelopeResponse(response_data=b"\0\0\0\7" + payload)
    context = Context(Origin(api_version=version))
    assert await node.serve(context=context) == payload
    assert context.wait_ms == 1234


async def test_a_request_of_which_nothing_is_left_is_not_forwarded() -> None:
    node = Node()
    node.api.prepared = Prepared(None, lambda response: ("whole", response))
    assert node.serve() == ("whole", None)
    assert node.sent == []


async def test_a_node_that_leads_judges_all_as_the_controller() -> None:
    node = Node(leads=True)
    node.api.prepared = Prepared(None, lambda _response: "prepared")
    assert await node.serve() == b"here"


async def test_an_address_of_ipv6_has_sixteen_bytes() -> None:
    node = Node()
    await node.serve(context=Context(Origin(peer_host="::1")))
    assert node.sent[0][0].client_host_address == bytes(15) + b"\1"


async def test_a_client_that_waits_less_is_forwarded_for_less() -> None:
    node = Node()
    await node.serve(DeleteTopicsRequest(timeout_ms=1500))
    await node.serve(CreatePartitionsRequest(timeout_ms=10_000_000))
    assert [timeout_ms for _, timeout_ms in node.sent] == [1500, 60_000]


async def test_the_answer_waits_until_this_broker_has_what_was_committed() -> None:
    node = Node()
    node.response = EnvelopeResponse(response_data=b"\0\0\0\7there", committed_offset=99)
    node.in_force.clear()
    outcome = asyncio.ensure_future(_await(node.serve()))
    while not node.published:
        await asyncio.wait([outcome], timeout=0.001)
    assert not outcome.done()
    node.in_force.set()
    assert await outcome == b"there"
    assert node.published == [99]


async def test_an_answer_does_not_wait_longer_than_the_client() -> None:
    node = Node()
    node.in_force.clear()
    assert await node.serve(DeleteTopicsRequest(timeout_ms=10)) == b"there"


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@pytest.mark.parametrize(
    "outcome", [lambda: b"here", lambda: _await(_set(b"here")), lambda: _set(b"here")], ids=["bytes", "task", "reply"]
)
async def test_a_node_that_leads_decides_itself(outcome: Callable[[], Any]) -> None:
    node = Node(leads=True)
    node.api.outcome = outcome
    assert await node.serve() == b"here"
    assert not node.sent


def _set(value: Any) -> Reply:
    reply = Reply()
    reply(value, None)
    return reply


async def test_a_node_that_loses_its_office_meanwhile_forwards() -> None:
    node = Node(leads=True)

    async def resign() -> Any:
        raise NotControllerError("another was elected")

    node.api.outcome = resign
    assert await node.serve() == b"there"


async def test_what_every_broker_answers_is_not_forwarded() -> None:
    node, api = Node(), Api(forwarded=False)
    assert node.forwarding.apply({KEY: api}) == {KEY: api}


@pytest.mark.parametrize(
    ("response", "kind", "words"),
    [
        (EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), UnservedByControllerError, "API 20 version 6"),
        (EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ControllerError, "error 31"),
        (EnvelopeResponse(response_data=b"\0\0\0\10there"), ControllerError, "id 00000008, not 7"),
        (EnvelopeResponse(response_data=b"\0\0"), ControllerError, "correlation id 0000"),
        (EnvelopeResponse(response_data=None), ControllerError, "error 0"),
        (ControllerTimeoutError("no answer"), ControllerTimeoutError, "no answer"),
    ],
)
async def test_what_is_no_answer_is_an_error(response: Any, kind: type[Exception], words: str) -> None:
    node = Node()
    node.response = response
    with pytest.raises(kind, match=words):
        await node.serve()


async def test_a_request_that_no_controller_would_read_is_refused_here() -> None:
    node = Node()
    with pytest.raises(UnforwardableError, match=r"9000 bytes .* 10000 bytes \(socket.request.max.bytes\)"):
        await node.serve(context=Context(Origin(message=bytes(9000))))
    assert not node.sent


async def test_a_stop_ends_what_waits() -> None:
    node = Node()
    node.responded.clear()
    outcome = asyncio.ensure_future(_await(node.serve()))
    while not node.sent:
        await asyncio.wait([outcome], timeout=0.001)
    node.forwarding.close()
    with pytest.raises(NotControllerError, match="stopping"):
        await outcome
