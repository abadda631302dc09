from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.handlers.context import BrokerContext, BrokerServices, Contexts, RequestContext
from pybroker.handlers.own_requests import OwnRequests
from pybroker.machine.reply import Reply
from pybroker.metadata.image import EMPTY_IMAGE
from pybroker.protocol.codec import encode
from pybroker.protocol.header import response_prefix
from pybroker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from pybroker.protocol.schema import Message

HEARTBEAT = 63
NEWEST = 1
REQUEST = BrokerHeartbeatRequest(broker_id=4)
RESPONSE = BrokerHeartbeatResponse(error_code=9)


class ScriptedApi(NamedTuple):
    handle: Callable[[Any, RequestContext], Any]
    name: str = "BrokerHeartbeat"
    min_version: int = 0
    max_version: int = NEWEST
    request_type: type[Message] = BrokerHeartbeatRequest
    forwarded: bool = False

    def prepare(self, request: Any, context: Any) -> None:
        raise AssertionError("nothing is forwarded")

    def failed(self, request: Any, context: Any, error: Exception) -> Message:
        return BrokerHeartbeatResponse(error_code=len(str(error)))

    def unsupported(self, context: Any) -> None:
        raise AssertionError("the version is one that is served")


async def query(handle: Callable[[Any, RequestContext], Any]) -> Message:
    given: dict[str, Any] = dict.fromkeys(BrokerServices.__struct_fields__)
    config = BrokerConfig({"node.id": "4"})
    services = BrokerServices(**given | {"config": config, "image": lambda: EMPTY_IMAGE, "authorizer": object()})
    return await OwnRequests({HEARTBEAT: ScriptedApi(handle)}, Contexts(BrokerContext, services)).respond(REQUEST)


async def test_a_handler_finds_the_request_itself_and_a_context_in_which_everything_is_allowed() -> None:
    seen: list[Any] = []

    def handle(request: Any, context: RequestContext) -> Message:
        seen.extend((request, context.version, context.api_key, context.listener, context.authorizer, context.by_token))
        return RESPONSE

    assert await query(handle) is RESPONSE
    assert seen == [REQUEST, NEWEST, HEARTBEAT, "PLAINTEXT", None, False]
    assert seen[0] is REQUEST


async def test_every_way_in_which_a_handler_answers_is_an_answer() -> None:
    async def later(*_: Any) -> Message:
        return RESPONSE

    reply = Reply()
    reply(RESPONSE, None)
    assert await query(later) is RESPONSE
    assert await query(lambda *_: reply) is RESPONSE
    ready = response_prefix(HEARTBEAT, NEWEST) + encode(RESPONSE, NEWEST)
    assert await query(lambda *_: ready) == RESPONSE


@pytest.mark.parametrize("is_awaited", [False, True])
async def test_what_a_handler_raises_is_answered_as_its_api_says(is_awaited: bool) -> None:
    def fail(*_: Any) -> Message:
        raise ValueError("12345")

    async def fail_later(*_: Any) -> Message:
        raise ValueError("12345")

    assert await query(fail_later if is_awaited else fail) == BrokerHeartbeatResponse(error_code=5)
