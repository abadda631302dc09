"""What clients say of a port where no Kafka broker listens."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pybroker.client import Admin, Producer
from pybroker.client.errors import AuthenticationError, ClientError

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
TLS_ALERT = bytes.fromhex("15030300020228")
SSH = b"SSH-2.0-OpenSSH_9.2\r\n"
SAID = [
    (HTTP, 'something other than Kafka answers there: its answer begins with "HTTP"'),
    (TLS_ALERT, "the listener speaks TLS: set security.protocol=SSL or SASL_SSL"),
    (SSH, r"a response of 1397966893 bytes: something other than Kafka answers there \(it begins with 53 53 48 2d\)"),
]


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
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
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(60)


@pytest.mark.parametrize(("answer", "said"), SAID, ids=["http", "tls", "ssh"])
def test_a_producer_says_what_answers_instead_of_kafka(answer: bytes, said: str) -> None:
    with answering(answer) as server, Producer(server, {"max.block.ms": 400}) as producer:
        refused = pytest.raises(ClientError, match=said)
        with refused:
            producer.send("t", b"x")


@pytest.mark.parametrize(("answer", "said"), SAID, ids=["http", "tls", "ssh"])
def test_an_admin_says_what_answers_instead_of_kafka(answer: bytes, said: str) -> None:
    settings = {"request.timeout.ms": 400, "default.api.timeout.ms": 400}
    with answering(answer) as server, Admin(server, settings) as admin, pytest.raises(ClientError, match=said):
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
    with answering(TLS_ALERT) as server:
        text = f"^{server}: the listener speaks TLS: set security.protocol={right}$"
        with Producer(server, settings) as producer, pytest.raises(AuthenticationError, match=text):
            producer.send("t", b"x")
        with Admin(server, settings) as admin, pytest.raises(AuthenticationError, match=text):
            admin.list_topics()
