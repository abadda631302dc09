"""A proof that holds for a while (KIP-368): what a session may do when it has ended, and how it is proved again.

Delegation tokens that have ended, that are used again, and those of others are in
`tests/conformance/test_delegation_tokens.py`, tokens of OAUTHBEARER in `tests/conformance/test_oauth.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from pybench.peers.free_ports import free_ports
from pybroker.testing import Broker
from tests.conformance.sasl_clients import ILLEGAL_SASL_STATE, NONE, handshake, settings, token
from tests.support.conditions import wait_until
from tests.support.wire import Wire

LIFETIME_MS = 3_600_000
PROOF = b"\0alice\0alice secret"


class At(NamedTuple):
    """A broker whose clock the tests set, and the address at which its sessions end."""

    broker: Broker
    address: str

    def end_sessions(self) -> None:
        """Let all sessions of now be over."""
        self.broker.advance(LIFETIME_MS / 1000 + 1)


@pytest.fixture(scope="module")
def at() -> Iterator[At]:
    port, plain_port = free_ports(2)
    given = {"listener.name.sasl.plain.connections.max.reauth.ms": str(LIFETIME_MS)}
    with Broker(properties={**settings(port, plain_port), **given}) as broker:
        yield At(broker, f"127.0.0.1:{port}")


def log_in(wire: Wire) -> None:
    """Authenticate."""
    assert handshake(wire, "PLAIN").error_code == NONE
    response = token(wire, PROOF)
    assert response.error_code == NONE
    assert response.session_lifetime_ms == LIFETIME_MS


def test_a_session_that_has_ended_is_closed_at_the_next_request(at: At) -> None:
    with Wire(at.address) as wire:
        log_in(wire)
        assert wire.call("Metadata", 9, topics=[]).brokers
        at.end_sessions()
        wire.send_bytes(b"\0\0\0\x0f\0\x03\0\x09\0\0\0\x63\xff\xff\0\x01\0\0\0")
        assert wire.is_closed_by_peer()


def test_a_session_that_has_ended_may_be_proved_again(at: At) -> None:
    with Wire(at.address) as wire:
        log_in(wire)
        at.end_sessions()
        log_in(wire)
        assert wire.call("Metadata", 9, topics=[]).brokers


def test_a_session_is_proved_again_once_in_a_second_at_most(at: At) -> None:
    def soon() -> int | None:
        """The error of a proof within a second of another; None where this took longer."""
        with Wire(at.address) as wire:
            log_in(wire)
            began = time.monotonic()
            log_in(wire)
            error: int = handshake(wire, "PLAIN").error_code
            is_soon = time.monotonic() - began < 1
            assert wire.call("Metadata", 9, topics=[]).brokers or error == NONE
            return error if is_soon else None

    assert wait_until(soon, within=60, what="a third proof within a second") == ILLEGAL_SASL_STATE
    with Wire(at.address) as wire:
        log_in(wire)
        log_in(wire)
        at.broker.advance(1)
        log_in(wire)


@pytest.mark.parametrize("other", [b"\0bob\0b", b"\0alice\0wrong"])
def test_nobody_becomes_somebody_else(at: At, other: bytes) -> None:
    with Wire(at.address) as wire:
        log_in(wire)
        handshake(wire, "PLAIN")
        assert token(wire, other).error_code
        assert wire.is_closed_by_peer()
