"""What clients say of a port where no Kafka broker listens."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pybroker.client import Admin, AsyncAdmin, Consumer, Fetcher, NewTopic, Producer, TopicPartition
from pybroker.client.errors import AuthenticationError, ClientError
from pybroker.testing import Broker

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
TLS_ALERT = bytes.fromhex("15030300020228")
SSH = b"SSH-2.0-OpenSSH_9.2\r\n"
REPORTED = [
    (HTTP, 'something other than Kafka answers there: its answer begins with "HTTP"'),
    (TLS_ALERT, "the listener speaks TLS: set security.protocol=SSL or SASL_SSL"),
    (SSH, r"a response of 1397966893 bytes: something other than Kafka answers there \(it begins with 53 53 48 2d\)"),
]


@contextmanager
def responding(response: bytes) -> Iterator[str]:
    """A server that answers the first bytes of each connection so, and closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(response)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(60)


@pytest.mark.parametrize(("response", "reported"), REPORTED, ids=["http", "tls", "ssh"])
def test_a_producer_says_what_answers_instead_of_kafka(response: bytes, reported: str) -> None:
    with responding(response) as server, Producer(server, {"max.block.ms": 400}) as producer:
        refused = pytest.raises(ClientError, match=reported)
        with refused:
            producer.send("t", b"x")


@pytest.mark.parametrize(("response", "reported"), REPORTED, ids=["http", "tls", "ssh"])
def test_an_admin_says_what_answers_instead_of_kafka(response: bytes, reported: str) -> None:
    settings = {"request.timeout.ms": 400, "default.api.timeout.ms": 400}
    with responding(response) as server, Admin(server, settings) as admin, pytest.raises(ClientError, match=reported):
        admin.list_topics()


PASSWORD = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";',
}
MISMATCHES = [({}, "SSL or SASL_SSL"), (PASSWORD, "SASL_SSL")]


@pytest.mark.parametrize(("settings", "right"), MISMATCHES)
def test_a_listener_that_speaks_tls_is_refused_at_once_with_the_remedy(settings: dict[str, Any], right: str) -> None:
    """No other try is awaited: the times of both clients are the defaults, and longer than the test's."""
    with responding(TLS_ALERT) as server:
        text = f"^{server}: the listener speaks TLS: set security.protocol={right}$"
        with Producer(server, settings) as producer, pytest.raises(AuthenticationError, match=text):
            producer.send("t", b"x")
        with Admin(server, settings) as admin, pytest.raises(AuthenticationError, match=text):
            admin.list_topics()


@contextmanager
def cutting(server: str, *, cuts: int, exchanges: int) -> Iterator[str]:
    """A door to a broker that closes the first `cuts` connections behind so many exchanges, as one that restarts."""
    host, _, port = server.rpartition(":")
    listener = socket.create_server(("127.0.0.1", 0))
    cut = iter(range(cuts))

    def relay(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def pass_on(connection: socket.socket, *, ends: bool) -> None:
        with connection, socket.create_connection((host, int(port))) as broker:
            if not ends:
                back = threading.Thread(target=relay, args=(broker, connection))
                back.start()
                relay(connection, broker)
                back.join()
                return
            for _ in range(exchanges):
                broker.sendall(connection.recv(65_536))
                connection.sendall(broker.recv(65_536))
            connection.recv(65_536)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                ends = next(cut, None) is not None
                threading.Thread(target=pass_on, args=(connection,), kwargs={"ends": ends}, daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


@pytest.mark.parametrize("cuts", [1, 2, 5])
@pytest.mark.parametrize(("security", "exchanges"), [(None, 1), ("SSL", 0)], ids=["no SASL", "TLS"])
def test_a_broker_that_restarts_is_tried_again(security: str | None, exchanges: int, cuts: int) -> None:
    """It closes connections as a listener of another protocol does: in the handshake, and at the first request."""
    with Broker(security=security) as broker:
        settings = broker.client_properties()
        del settings["bootstrap.servers"]
        with cutting(broker.bootstrap_servers, cuts=cuts, exchanges=exchanges) as door, Admin(door, settings) as admin:
            admin.create_topics([NewTopic("t", 1, 1)])
        with (
            cutting(broker.bootstrap_servers, cuts=cuts, exchanges=exchanges) as door,
            Producer(door, settings) as producer,
        ):
            assert producer.send("t", b"x").result(60).offset == 0


@pytest.mark.parametrize(
    ("security", "protocol", "reported"),
    [
        (None, "SSL", "the listener does not speak TLS: set security.protocol=PLAINTEXT"),
        (
            "SASL_PLAINTEXT",
            "PLAINTEXT",
            (
                "the listener expects SASL: set security.protocol=SASL_PLAINTEXT and sasl.mechanism to one of "
                "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
            ),
        ),
    ],
)
async def test_a_listener_without_tls_and_one_with_sasl_are_refused_at_once_with_the_remedy(
    security: str | None, protocol: str, reported: str
) -> None:
    """No other try is awaited: the times of all clients are the defaults."""
    settings = {"security.protocol": protocol}

    def use_blocking(server: str) -> None:
        text = f"^{server}: {reported}$"
        with Producer(server, settings) as producer, pytest.raises(AuthenticationError, match=text):
            producer.send("t", b"x")
        with Admin(server, settings) as admin, pytest.raises(AuthenticationError, match=text):
            admin.list_topics()
        with Consumer(server, {**settings, "group.id": "g"}) as consumer:
            consumer.subscribe(["t"])
            with pytest.raises(AuthenticationError, match=text):
                consumer.poll(60)
        with Fetcher(server, settings) as fetcher:
            fetcher.assign([TopicPartition("t", 0)])
            with pytest.raises(AuthenticationError, match=text):
                fetcher.poll(60)

    with Broker(security=security) as broker:
        server = broker.bootstrap_servers
        await asyncio.to_thread(use_blocking, server)
        async with AsyncAdmin(server, settings) as admin:
            for _ in range(2):
                with pytest.raises(AuthenticationError, match=f"^{server}: {reported}$"):
                    await admin.list_topics()
