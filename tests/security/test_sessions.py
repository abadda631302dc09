"""A proof that holds for a while (KIP-368): what a session may do when it has ended, and how it is proved again.

Delegation tokens that have ended, that are used again, and those of others are in
`tests/conformance/test_delegation_tokens.py`, tokens of OAUTHBEARER in `tests/conformance/test_oauth.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pybench.peers.free_ports import free_ports
from pybroker.testing import Broker
from tests.conformance.sasl_clients import ILLEGAL_SASL_STATE, NONE, handshake, settings, token
from tests.support.conditions import wait_until
from tests.support.wire import Wire

LIFETIME_MS = 1500
PROOF = b"\0alice\0alice secret"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port, plain_port = free_ports(2)
    given = {"listener.name.sasl.plain.connections.max.reauth.ms": str(LIFETIME_MS)}
    with Broker(properties={**settings(port, plain_port), **given}):
        yield f"127.0.0.1:{port}"


def log_in(wire: Wire) -> float:
    """Authenticate; returns when the session is over at the latest, on the monotonic clock."""
    assert handshake(wire, "PLAIN").error_code == NONE
    answer = token(wire, PROOF)
    assert answer.error_code == NONE
    assert answer.session_lifetime_ms == LIFETIME_MS
    return time.monotonic() + LIFETIME_MS / 1000


def test_a_session_that_has_ended_is_closed_at_the_next_request(address: str) -> None:
    with Wire(address) as wire:
        over = log_in(wire)
        assert wire.call("Metadata", 9, topics=[]).brokers
        wait_until(lambda: time.monotonic() > over, within=10, what="the session is over")
        wire.send_bytes(b"\0\0\0\x0f\0\x03\0\x09\0\0\0\x63\xff\xff\0\x01\0\0\0")
        assert wire.is_closed_by_peer()


def test_a_session_that_has_ended_may_be_proved_again(address: str) -> None:
    with Wire(address) as wire:
        over = log_in(wire)
        wait_until(lambda: time.monotonic() > over, within=10, what="the session is over")
        log_in(wire)
        assert wire.call("Metadata", 9, topics=[]).brokers


def test_a_session_is_proved_again_once_in_a_second_at_most(address: str) -> None:
    with Wire(address) as wire:
        log_in(wire)
        log_in(wire)
        assert handshake(wire, "PLAIN").error_code == ILLEGAL_SASL_STATE
        assert wire.call("Metadata", 9, topics=[]).brokers


@pytest.mark.parametrize("other", [b"\0bob\0b", b"\0alice\0wrong"])
def test_nobody_becomes_somebody_else(address: str, other: bytes) -> None:
    with Wire(address) as wire:
        log_in(wire)
        handshake(wire, "PLAIN")
        assert token(wire, other).error_code
        assert wire.is_closed_by_peer()
