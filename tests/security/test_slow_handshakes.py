"""Who begins and does not go on holds little, keeps nobody else out, and is closed at a deadline.

The claims are about our broker: Apache Kafka lets a handshake take `connections.max.idle.ms`, ten minutes.
"""

from __future__ import annotations

import resource
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from pybroker.net import listeners, tls
from tests.conformance.sasl_clients import NONE, handshake, token
from tests.security.conftest import ours
from tests.support.certificates import Authority
from tests.support.conditions import wait_until
from tests.support.secured_server import PASSWORD, At, secured_server
from tests.support.wire import Wire, header

pytestmark = [ours, pytest.mark.timeout(120)]

COUNT = 2000
DEADLINE_MS = 3000
BYTES_EACH = 48 << 10
"""The most memory of this process, which is both sides', for each connection."""


@pytest.fixture(scope="module")
def hasty() -> Iterator[tuple[At, Authority]]:
    """A broker in which handshakes and logins have a tenth of their time."""
    authority = Authority()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tls, "HANDSHAKE_TIMEOUT_MS", DEADLINE_MS)
        patched.setattr(listeners, "AUTHENTICATION_TIMEOUT_MS", DEADLINE_MS)
        # A SYN that finds the queue full comes again after a second.
        with secured_server(authority, {"socket.listen.backlog.size": "4096"}) as at:
            yield at, authority


@contextmanager
def beginners(address: str, begins: bytes) -> Iterator[list[socket.socket]]:
    """Many connections that have sent the beginning of something."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    host, port = address.rsplit(":", 1)
    opened: list[socket.socket] = []
    try:
        for _ in range(COUNT):
            opened.append(socket.create_connection((host, int(port)), timeout=60))
            opened[-1].sendall(begins)
        yield opened
    finally:
        for one in opened:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def client_hello() -> bytes:
    """What a client of TLS sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        made.do_handshake()
    return outgoing.read()


def is_closed(one: socket.socket) -> bool:
    try:
        while one.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


BEGINNINGS = {
    "half of a ClientHello": ("SSL", lambda: client_hello()[:200]),
    "a ClientHello alone": ("SASL_SSL", client_hello),
    "a handshake of SASL": ("SASL_PLAINTEXT", lambda: frame(17, 1, b"\0\x0dSCRAM-SHA-256")),
}


def frame(key: int, version: int, body: bytes) -> bytes:
    whole = header(key, version, 1) + body
    return struct.pack(">i", len(whole)) + whole


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_two_thousand_that_begin_hold_little_and_keep_nobody_out(hasty: tuple[At, Authority], beginning: str) -> None:
    at, authority = hasty
    protocol, begins = BEGINNINGS[beginning]
    process = psutil.Process()
    before = process.memory_info().rss
    with beginners(at(protocol), begins()) as opened:
        assert process.memory_info().rss - before < COUNT * BYTES_EACH
        with Wire(at("SASL_PLAINTEXT")) as wire:
            handshake(wire, "PLAIN")
            assert token(wire, f"\0alice\0{PASSWORD}".encode()).error_code == NONE
        trusting = ssl.create_default_context(cadata=authority.pem)
        host, port = at("SSL").rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=60) as plain:
            trusting.wrap_socket(plain, server_hostname="localhost").close()
        assert all(is_closed(one) for one in opened)


def test_a_byte_now_and_then_gives_no_more_time(hasty: tuple[At, Authority]) -> None:
    at, _ = hasty
    with Wire(at("SASL_PLAINTEXT")) as wire:

        def refused() -> bool:
            try:
                wire.send_frame(header(18, 0, 7))
                return wire.read_frame() == b""
            except (ConnectionError, TimeoutError):
                return True

        wait_until(refused, within=60, what="the connection is closed")
