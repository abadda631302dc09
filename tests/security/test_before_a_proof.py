"""Who has not proved who it is gets nothing, takes little, and learns nothing."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from pybench.peers.free_ports import free_ports
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.messages import request_class
from pybroker.testing import Broker
from tests.conformance.sasl_clients import NONE, handshake, settings, token
from tests.support.wire import Wire, request

SASL = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


def declared() -> list[ApiKey]:
    found = []
    for key in ApiKey:
        try:
            request_class(key)
        except KeyError:
            continue
        found.append(key)
    return found


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port, plain_port = free_ports(2)
    given = {"connection.failed.authentication.delay.ms": "0", "sasl.server.max.receive.size": "4096"}
    with Broker(properties={**settings(port, plain_port), **given}):
        yield f"127.0.0.1:{port}"


def frame(key: int, version: int = 0, body: bytes = bytes(64)) -> bytes:
    head = struct.pack(">hhih", key, version, 7, -1)
    return struct.pack(">i", len(head + body)) + head + body


def responded(address: str, *frames: bytes) -> bytes:
    """What comes back until the broker closes the connection."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as one:
        one.sendall(b"".join(frames))
        received = b""
        while data := one.recv(65536):
            received += data
    return received


@pytest.mark.parametrize("key", [key for key in declared() if key not in SASL], ids=lambda key: key.name)
def test_no_api_is_answered_before_a_proof(address: str, key: ApiKey) -> None:
    assert responded(address, frame(key)) == b""


@pytest.mark.parametrize("key", [key for key in declared() if key not in SASL], ids=lambda key: key.name)
def test_no_api_is_answered_during_an_exchange(address: str, key: ApiKey) -> None:
    with Wire(address) as wire:
        assert handshake(wire, "SCRAM-SHA-256").error_code == NONE
        assert token(wire, b"n,,n=alice,r=abc").error_code == NONE
        wire.send_bytes(frame(key))
        assert wire.is_closed_by_peer()


def test_a_frame_that_is_larger_than_a_login_needs_is_not_read(address: str) -> None:
    assert responded(address, struct.pack(">i", 4097)) == b""


def test_what_is_sent_behind_a_refused_token_is_not_read(address: str) -> None:
    with Wire(address) as wire:
        handshake(wire, "PLAIN")
        assert token(wire, b"\0alice\0wrong").error_code
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize("size", [0, 1, 3, 3000])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_rubbish_is_refused(address: str, mechanism: str, size: int) -> None:
    with Wire(address) as wire:
        handshake(wire, mechanism)
        response = token(wire, b"\xfe" * size)
        assert response.error_code
        assert mechanism in response.error_message
        assert wire.is_closed_by_peer()


def test_a_token_before_a_handshake_is_refused(address: str) -> None:
    with Wire(address) as wire:
        assert token(wire, b"\0alice\0alice secret").error_code
        assert wire.is_closed_by_peer()


def test_bare_tokens_are_bounded_as_other_frames_are(address: str) -> None:
    with Wire(address) as wire:
        assert wire.call("SaslHandshake", 0, mechanism="PLAIN").error_code == NONE
        wire.send_bytes(struct.pack(">i", 4097))
        assert wire.is_closed_by_peer()


def test_a_request_right_behind_a_bare_handshake_is_a_token(address: str) -> None:
    with Wire(address) as wire:
        wire.send(request("SaslHandshake", 0, mechanism="PLAIN"))
        wire.send(request("Metadata", 9, topics=[]))
        assert len(wire.read_frame()) > 4, "the handshake's answer"
        assert wire.is_closed_by_peer()
