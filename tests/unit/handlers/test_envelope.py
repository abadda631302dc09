"""Requests that a broker forwards are decided here as if their clients had asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.controller.envelopes import build_envelope, open_response
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import RequestHeader
from pybroker.protocol.messages.alter_partition import AlterPartitionRequest
from pybroker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from pybroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pybroker.protocol.messages.envelope import EnvelopeRequest
from pybroker.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from pybroker.protocol.messages.metadata import MetadataRequest
from pybroker.protocol.schema import Message
from pybroker.security.delegation_tokens import DelegationTokens
from pybroker.security.principals import Principal
from tests.support.controller_requests import Requests
from tests.support.controllers import build, running

ALICE = Principal("User", "alice")
TOPIC = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])


def head(request: Message, version: int, correlation_id: int = 5) -> RequestHeader:
    return RequestHeader(
        request_api_key=type(request).__message__.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id="client",
    )


def wrapped(request: Message, version: int, correlation_id: int = 5) -> EnvelopeRequest:
    tags = b"\x00" if type(request).__message__.is_flexible(version) else b""
    message = tags + encode(request, version)
    return build_envelope(head(request, version, correlation_id), message, ALICE, "10.0.0.1")


@pytest.mark.parametrize("version", [2, 7])
async def test_a_forwarded_request_is_answered_in_its_own_version_and_says_how_far_the_log_goes(
    tmp_path: Path, version: int
) -> None:
    async with running(tmp_path) as one:
        await one.register()
        reply = await Requests(one).query(wrapped(TOPIC, version, correlation_id=-3))
        assert reply.error_code == 0
        payload = open_response(head(TOPIC, version, -3), reply)
        response, size = decode(CreateTopicsResponse, payload, version, 1 if version == 7 else 0)
        assert size + (1 if version == 7 else 0) == len(payload)
        assert [(topic.name, topic.error_code) for topic in response.topics] == [("t", 0)]
        assert reply.committed_offset == one.image.offset
        assert "t" in one.image.topics.by_name


async def test_a_fault_of_the_request_is_its_clients_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        reply = await Requests(one).query(wrapped(TOPIC, 7))
        response, _ = decode(CreateTopicsResponse, open_response(head(TOPIC, 7), reply), 7, 1)
        assert response.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_a_node_that_does_not_lead_says_so_to_the_broker(tmp_path: Path) -> None:
    one = build(tmp_path)
    await one.controller.open()
    try:
        response = await Requests(one).query(wrapped(TOPIC, 7))
    finally:
        await one.controller.stop()
    assert (response.error_code, response.response_data) == (ErrorCode.NOT_CONTROLLER, None)


def bent(**changes: Any) -> EnvelopeRequest:
    envelope = wrapped(TOPIC, 7)
    for name, value in changes.items():
        setattr(envelope, name, value)
    return envelope


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (wrapped(MetadataRequest(), 12), ErrorCode.INVALID_REQUEST),
        (wrapped(AlterPartitionRequest(), 3), ErrorCode.INVALID_REQUEST),
        (wrapped(wrapped(TOPIC, 7), 0), ErrorCode.INVALID_REQUEST),
        (bent(request_data=b""), ErrorCode.INVALID_REQUEST),
        (bent(request_data=wrapped(TOPIC, 7).request_data[:-3]), ErrorCode.INVALID_REQUEST),
        (bent(request_data=b"\x00\x13\x00\x63" + wrapped(TOPIC, 7).request_data[4:]), ErrorCode.UNSUPPORTED_VERSION),
        (bent(client_host_address=b"abc"), ErrorCode.INVALID_REQUEST),
        (bent(request_principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (bent(request_principal=b""), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (bent(request_principal=b"\x00\x01abc"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    ],
)
async def test_what_cannot_be_forwarded_is_refused(tmp_path: Path, envelope: EnvelopeRequest, code: ErrorCode) -> None:
    async with running(tmp_path) as one:
        await one.register()
        offset = one.image.offset
        response = await Requests(one).query(envelope)
        assert (response.error_code, response.response_data) == (code, None)
        assert one.image.offset == offset


async def test_a_forwarded_request_has_no_more_elements_than_any_other(tmp_path: Path) -> None:
    many = CreateTopicsRequest(topics=[CreatableTopic(name=f"t{number}") for number in range(9)])
    async with running(tmp_path) as one:
        requests = Requests(one, config=BrokerConfig({"socket.request.max.elements": "8"}))
        assert (await requests.query(wrapped(many, 7))).error_code == ErrorCode.INVALID_REQUEST
        listed = await requests.query(wrapped(ListPartitionReassignmentsRequest(topics=None), 0))
        assert listed.error_code == 0


async def test_a_forwarded_client_makes_a_token_unless_it_came_by_one(tmp_path: Path) -> None:
    request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
    async with running(tmp_path) as one:
        await one.register()
        tokens = DelegationTokens("secret", lambda: one.image.delegation_tokens, lambda: 1000)
        requests = Requests(one, tokens=tokens)
        for by_token, code in ((False, 0), (True, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)):
            message = b"\x00" + encode(request, 3)
            forwarded = build_envelope(head(request, 3), message, ALICE, "10.0.0.1", by_token=by_token)
            payload = open_response(head(request, 3), await requests.query(forwarded))
            made, _ = decode(CreateDelegationTokenResponse, payload, 3, 1)
            assert made.error_code == code
        (token,) = one.image.delegation_tokens.by_id.values()
        assert (token.owner, token.requester, token.issued_ms) == ("User:alice", "User:alice", 1000)
        direct = await requests.query(request)
        assert direct.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, (
            "this listener asks nobody who it is"
        )
