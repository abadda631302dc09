"""Listeners of TLS and real clients: what is encrypted arrives, and a certificate says who its owner is."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from pybroker.testing import Broker
from tests.support.certificates import DAY, Authority, Identity, listener_settings
from tests.support.conditions import wait_until

AUTHORITY = Authority()
SERVER = AUTHORITY.sign("broker")
ALICE = AUTHORITY.sign("alice")
VALUES = [bytes([number % 256]) * (number * 37 % 60_000) for number in range(200)]


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return AUTHORITY.write(tmp_path_factory.mktemp("trust") / "authority.pem")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    yield from encrypted(listener_settings(SERVER))


@pytest.fixture(scope="module")
def querying() -> Iterator[Broker]:
    yield from encrypted(listener_settings(SERVER, AUTHORITY, "required"))


def encrypted(settings: Mapping[str, str]) -> Iterator[Broker]:
    with Broker(properties={"listeners": "SSL://127.0.0.1:0", **settings}) as broker:
        yield broker


def address(broker: Broker) -> tuple[str, int]:
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    return host, int(port)


def knock(broker: Broker, trust: Path, shown: Path | None = None, **versions: ssl.TLSVersion) -> bytes:
    """Return the answer to ApiVersions, as the head of a frame."""
    context = ssl.create_default_context(cafile=str(trust))
    for name, version in versions.items():
        setattr(context, name, version)
    if shown is not None:
        context.load_cert_chain(shown)
    with (
        socket.create_connection(address(broker), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        body = struct.pack(">hhih", 18, 0, 7, -1)
        connection.sendall(struct.pack(">i", len(body)) + body)
        return connection.recv(8)


def test_librdkafka_reads_what_it_wrote(broker: Broker, trust: Path) -> None:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.ca.location": str(trust),
    }
    producer = Producer(settings)
    for value in VALUES:
        producer.produce("librdkafka", value)
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    read = consumer.consume(len(VALUES), timeout=60)
    consumer.close()
    assert [message.value() for message in read] == VALUES


def test_kafka_python_reads_what_it_wrote(broker: Broker, trust: Path) -> None:
    settings = {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SSL",
        "ssl_cafile": str(trust),
    }
    producer = KafkaProducer(**settings)
    for value in VALUES:
        producer.send("kafka-python", value)
    producer.flush(60)
    producer.close()
    consumer = KafkaConsumer("kafka-python", auto_offset_reset="earliest", **settings)
    read = [next(consumer).value for _ in VALUES]
    consumer.close()
    assert read == VALUES


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(broker: Broker, trust: Path, version: ssl.TLSVersion) -> None:
    response = knock(broker, trust, minimum_version=version, maximum_version=version)
    assert struct.unpack(">i", response[4:]) == (7,)


@pytest.mark.parametrize("name", ["localhost", "broker.example", "xn--bcher-kva.example", "x" * 63 + ".example", None])
def test_the_name_that_a_client_asks_for_chooses_nothing(broker: Broker, trust: Path, name: str | None) -> None:
    """SNI: the listener's one certificate is shown to every name (docs/adr/0058)."""
    context = ssl.create_default_context(cafile=str(trust))
    context.check_hostname = False
    with (
        socket.create_connection(address(broker), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        assert connection.getpeercert(binary_form=True) == SERVER.der


def test_a_client_that_speaks_plaintext_is_said_and_closed(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with socket.create_connection(address(broker), timeout=60) as plain:
        plain.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))
        response = b"".join(iter(lambda: plain.recv(64), b""))
    # An alert, and the end.
    assert response[:1] == b"\x15"
    reported(caplog, "what it sent is no TLS")


def test_a_client_that_speaks_tls_to_plaintext_is_said_and_closed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with (
        Broker() as broker,
        socket.create_connection(address(broker), timeout=60) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")
    reported(caplog, "It begins as TLS does")


def test_a_certificate_of_the_authority_is_let_in(querying: Broker, trust: Path, tmp_path: Path) -> None:
    response = knock(querying, trust, ALICE.write_pem(tmp_path / "alice.pem"))
    assert struct.unpack(">i", response[4:]) == (7,)


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (lambda: Authority("Another").sign("mallory"), "UnknownIssuer"),
        (lambda: AUTHORITY.sign("late", since=-3 * DAY, until=-DAY), "xpired"),
        (lambda: AUTHORITY.sign("early", since=DAY), "not valid yet"),
        (lambda: None, "peer sent no certificates"),
    ],
    ids=["another authority", "expired", "not yet valid", "none"],
)
def test_other_certificates_are_not(
    querying: Broker,
    trust: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    shown: Callable[[], Identity | None],
    why: str,
) -> None:
    caplog.set_level(logging.WARNING)
    identity = shown()
    path = None if identity is None else identity.write_pem(tmp_path / "shown.pem")
    # In TLS 1.3 a client learns of that with its first read.
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        assert knock(querying, trust, path) == b""
    reported(caplog, why)


def test_a_changed_file_is_seen_by_new_connections(trust: Path, tmp_path: Path) -> None:
    store = SERVER.write_pkcs12(tmp_path / "broker.p12", "secret")
    settings = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "secret",
    }
    renewed = AUTHORITY.sign("renewed")
    with Broker(properties={"listeners": "SSL://127.0.0.1:0", **settings}) as broker:
        context = ssl.create_default_context(cafile=str(trust))
        with (
            socket.create_connection(address(broker), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as old,
        ):
            assert old.getpeercert(True) == SERVER.der
            renewed.write_pkcs12(store, "secret")

            def seen() -> bool:
                with (
                    socket.create_connection(address(broker), timeout=60) as plain,
                    context.wrap_socket(plain, server_hostname="localhost") as new,
                ):
                    return new.getpeercert(True) == renewed.der

            wait_until(seen, within=60, what="the new certificate is shown")
            body = struct.pack(">hhih", 18, 0, 7, -1)
            old.sendall(struct.pack(">i", len(body)) + body)
            assert len(old.recv(8)) == 8


def reported(caplog: pytest.LogCaptureFixture, words: str) -> None:
    wait_until(lambda: any(words in line for line in caplog.messages), within=60, what=f"the log says {words!r}")
