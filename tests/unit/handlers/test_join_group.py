"""JoinGroup: what a refusal says of the protocol."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.handlers.join_group import join_group
from pybroker.handlers.registry import definition
from pybroker.machine.reply import Reply
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

CONFIG = SimpleNamespace(group_min_session_timeout_ms=1, group_max_session_timeout_ms=1_000)


async def respond(version: int, response: JoinGroupResponse, **reported: Any) -> JoinGroupResponse:
    """Join a group whose coordinator gives that response."""

    def submit(_group_id: str, _event: Any) -> Reply:
        reply = Reply()
        reply(response, None)
        return reply

    services = SimpleNamespace(config=CONFIG, groups=SimpleNamespace(submit=submit))
    context: Any = SimpleNamespace(version=version, client_id="c", client_host="h", services=services)
    request = JoinGroupRequest(**{"group_id": "g", "session_timeout_ms": 10, "member_id": "m", **reported})
    try:
        responded: JoinGroupResponse = await join_group(request, context)
    except Exception as error:  # noqa: BLE001 - as the dispatch does
        responded = definition("join_group").failed(request, context, error)
    encode(responded, version)
    return responded


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize("name", ["", None])
async def test_a_refusal_names_no_protocol(version: int, name: str | None) -> None:
    refused = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="new", protocol_name=name)
    responded = await respond(version, refused)
    assert (responded.member_id, responded.protocol_name) == ("new", None if version >= 7 else "")


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize("reported", [{"group_id": ""}, {"session_timeout_ms": 0}])
async def test_a_wrong_request_is_refused_without_a_protocol(version: int, reported: dict[str, Any]) -> None:
    responded = await respond(version, JoinGroupResponse(), **reported)
    assert responded.error_code in (ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_SESSION_TIMEOUT)
    assert (responded.member_id, responded.protocol_name) == ("m", None if version >= 7 else "")


@pytest.mark.parametrize("version", range(10))
async def test_a_member_that_is_in_learns_the_protocol(version: int) -> None:
    assert (await respond(version, JoinGroupResponse(protocol_name="range"))).protocol_name == "range"
