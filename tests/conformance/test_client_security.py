"""The clients over TLS and SASL against Apache Kafka: native engine, Admin and consumer groups, each mechanism, and
what they say where one side does not believe the other.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybroker.client import Admin, Consumer, Fetcher, NewTopic, Producer, TopicPartition
from pybroker.client.errors import AuthenticationError, ClientError
from pybroker.client.security import BearerToken
from pybroker.testing.certificates import Authority
from tests.support import programs
from tests.support.secured_kafka import SecuredKafka, unsecured_token

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("secured kafka")]

_numbers = itertools.count(1)
JAAS = 'org.apache.kafka.common.security.{module} required username="alice" password="alice-secret";'
PLAIN = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS.format(module="plain.PlainLoginModule")}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def kafka(authority: Authority) -> Iterator[SecuredKafka]:
    programs.kafka_tools()
    with SecuredKafka(authority, {"connections.max.reauth.ms": "2000"}) as kafka:
        yield kafka


def exchanged(server: str, properties: dict[str, Any]) -> bool:
    """A topic made, records sent, and read by a group: every kind of connection that clients open."""
    topic = f"secured-{next(_numbers)}"
    with Admin(server, properties) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    with Producer(server, properties) as producer:
        for number in range(100):
            producer.send(topic, b"%d" % number)
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    with Consumer(server, {**properties, **group}) as consumer:
        consumer.subscribe([topic])
        seen: list[bytes | None] = []
        deadline = time.monotonic() + 60
        while len(seen) < 100 and time.monotonic() < deadline:
            seen += [record.value for record in consumer.poll(1.0)]
    return seen == [b"%d" % number for number in range(100)]


def scram(mechanism: str) -> dict[str, Any]:
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": JAAS.format(module="scram.ScramLoginModule")}


def bearer() -> dict[str, Any]:
    def provide() -> BearerToken:
        return BearerToken(unsecured_token("alice", time.time() + 600))

    return {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.provider": provide}


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize(
    "credentials",
    [PLAIN, scram("SCRAM-SHA-256"), scram("SCRAM-SHA-512"), bearer()],
    ids=lambda it: it["sasl.mechanism"],
)
def test_each_mechanism_lets_every_client_in(
    kafka: SecuredKafka, authority: Authority, protocol: str, credentials: dict[str, Any]
) -> None:
    trust = {"ssl.truststore.certificates": authority.pem} if protocol == "SASL_SSL" else {}
    assert exchanged(kafka.at(protocol), {"security.protocol": protocol, **credentials, **trust})


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3", None])
def test_tls_alone_with_stores_of_files(
    kafka: SecuredKafka, authority: Authority, tmp_path: Path, versions: str | None
) -> None:
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "client.p12").write_bytes(authority.issue("alice").pkcs12("store secret"))
    properties = {
        "security.protocol": "ssl",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.location": str(tmp_path / "client.p12"),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": "store secret",
        "ssl.enabled.protocols": versions,
    }
    assert exchanged(kafka.at("SSL"), properties)


def test_a_session_is_renewed_while_records_flow(kafka: SecuredKafka) -> None:
    server, topic = kafka.at("SASL_PLAINTEXT"), f"secured-{next(_numbers)}"
    properties = {"security.protocol": "SASL_PLAINTEXT", **scram("SCRAM-SHA-256")}
    with Admin(server, properties) as admin, Producer(server, {**properties, "retries": "0"}) as producer:
        admin.create_topics([NewTopic(topic, 1, 1)])
        until, sent = time.monotonic() + 5, 0
        while time.monotonic() < until:
            producer.send(topic, b"x").result()
            sent += 1
            if sent % 200 == 0:
                assert topic in admin.list_topics()
        assert producer.metrics()["connection-close-total"] <= 1, "only the bootstrap server's name is left"


REFUSED = [
    (
        "SASL_PLAINTEXT",
        {**PLAIN, "sasl.jaas.config": None, "sasl.username": "alice", "sasl.password": "wr0ng"},
        "PLAIN",
    ),
    ("SASL_PLAINTEXT", {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "bob", "sasl.password": "wr0ng"}, "SCRAM"),
    ("SSL", {}, "certificate"),
]


@pytest.mark.parametrize(("protocol", "credentials", "words"), REFUSED, ids=["plain", "scram", "unknown issuer"])
def test_a_refusal_comes_at_once_and_says_why(
    kafka: SecuredKafka, protocol: str, credentials: dict[str, Any], words: str
) -> None:
    # What is tried again as long as it may be does not end before this test is ended.
    patient = {"default.api.timeout.ms": 3_600_000, "max.block.ms": 3_600_000, "delivery.timeout.ms": 3_600_000}
    properties = {"security.protocol": protocol, "ssl.truststore.certificates": Authority().pem, **credentials}
    properties, server = {**properties, **patient}, kafka.at(protocol)
    with Admin(server, properties) as admin, pytest.raises(AuthenticationError, match=words) as error:
        admin.list_topics()
    assert "wr0ng" not in str(error.value)
    assert server in str(error.value)
    with Producer(server, properties) as producer, pytest.raises(AuthenticationError, match=words):
        producer.send("any", b"x").result()
    with Consumer(server, properties) as consumer, pytest.raises(AuthenticationError, match=words):
        consumer.partitions_for("any")


@pytest.mark.parametrize(
    ("requested", "there", "words"),
    [("PLAINTEXT", "SSL", "TLS"), ("SSL", "PLAINTEXT", "TLS"), ("SASL_PLAINTEXT", "PLAINTEXT", "SASL")],
)
def test_the_wrong_protocol_is_named(
    kafka: SecuredKafka, authority: Authority, requested: str, there: str, words: str
) -> None:
    properties = {
        "security.protocol": requested, "ssl.truststore.certificates": authority.pem, "default.api.timeout.ms": "2000",
        "request.timeout.ms": "2000", **(PLAIN if requested.startswith("SASL") else {}),
    }  # fmt: skip
    with Admin(kafka.at(there), properties) as admin, pytest.raises(ClientError, match=words):
        admin.list_topics()


PROTOCOLS = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
WRONG = [(client, listener) for client in PROTOCOLS for listener in PROTOCOLS if client != listener]
NAMED: dict[tuple[str, str], list[str]] = {
    ("PLAINTEXT", "SSL"): ["SSL", "SASL_SSL"],
    ("PLAINTEXT", "SASL_SSL"): ["SSL", "SASL_SSL"],
    ("SASL_PLAINTEXT", "SSL"): ["SASL_SSL"],
    ("SASL_PLAINTEXT", "PLAINTEXT"): [],
    ("SASL_SSL", "SSL"): [],
}
"""The protocols that the sentence names, where that is not the listener's alone: TLS hides whether there is SASL, and a
listener without SASL responds that it has none.
"""


@pytest.mark.parametrize(("protocol", "listener"), WRONG)
def test_a_client_of_another_protocol_than_the_listeners_fails_at_once_and_names_the_right_one(
    kafka: SecuredKafka, authority: Authority, protocol: str, listener: str
) -> None:
    """No other try is awaited: the times of the clients are the defaults, a minute."""
    properties: dict[str, Any] = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        properties["ssl.truststore.certificates"] = authority.pem
    if protocol.startswith("SASL"):
        properties |= PLAIN
    server = kafka.at(listener)
    with Admin(server, properties) as admin, pytest.raises(AuthenticationError) as of_admin:
        admin.list_topics()
    with Producer(server, properties) as producer, pytest.raises(AuthenticationError) as of_producer:
        producer.send("any", b"x")
    with Consumer(server, properties) as consumer, pytest.raises(AuthenticationError) as of_consumer:
        consumer.partitions_for("any")
    with Fetcher(server, properties) as fetcher:
        fetcher.assign([TopicPartition("any", 0)])
        with pytest.raises(AuthenticationError) as of_fetcher:
            fetcher.poll(60)
    reported = [str(error.value) for error in (of_admin, of_producer, of_consumer, of_fetcher)]
    assert reported == [reported[0]] * 4
    assert reported[0].startswith(f"{server}: ")
    named = re.findall(r"[A-Z_]+", reported[0].partition("set security.protocol=")[2])
    right = NAMED.get((protocol, listener), [listener])
    assert named[: len(right)] == right
    if "sasl.mechanism" in reported[0]:
        mechanisms = reported[0].partition(" to one of ")[2].split(", ")
        assert sorted(mechanisms) == ["OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
