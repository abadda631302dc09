"""Python classes of the user's in a broker, an authorizer and a builder of principals, as real clients meet them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from pybroker.client import Admin, BrokerError, ErrorCode, Fetcher, NewTopic, TopicPartition
from pybroker.client.administration.acl_admin import Acl, AclFilter, AclPattern
from pybroker.client.errors import AuthenticationError
from pybroker.testing import Broker
from tests.support.certificates import Authority, listener_settings
from tests.support.conditions import wait_until
from tests.support.own_classes import OWN, READERS, ReadersOnly, Requested

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
HERE = "tests.support.own_classes"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = {"alice": "a", "bob": "b", "carol": "c", "nobody": "n"}
AUTHORITY = Authority()
TOPIC, LITERAL, READ, ALLOW = 2, 3, 3, 3
Properties = dict[str, str]


class Cluster:
    """A broker with a listener that asks for a password, and one that asks for a certificate."""

    def __init__(self, broker: Broker) -> None:
        self.by_password, self.by_certificate = broker.bootstrap_servers.split(",")

    def user(self, name: str) -> Properties:
        """The settings of librdkafka, and of our own clients, for a user."""
        return {
            "bootstrap.servers": self.by_password,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": name,
            "sasl.password": USERS[name],
        }

    def owner(self, name: str) -> Properties:
        """The same for who has a certificate of this name."""
        own = AUTHORITY.sign(name)
        return {
            "bootstrap.servers": self.by_certificate,
            "security.protocol": "SSL",
            "ssl.ca.pem": AUTHORITY.pem,
            "ssl.certificate.pem": own.certificates,
            "ssl.key.pem": own.key_text(),
        }

    @contextlib.contextmanager
    def admin(self, name: str = "carol") -> Iterator[Admin]:
        with Admin(self.by_password, self.user(name)) as admin:
            yield admin


@contextlib.contextmanager
def serving(authorizer: str) -> Iterator[Cluster]:
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    given = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f"{PLAIN} required {users};",
        **listener_settings(AUTHORITY.sign("broker"), AUTHORITY, "required"),
        "authorizer.class.name": authorizer,
        "super.users": OWN,
        "principal.builder.class": f"{HERE}:Groups",
        "connection.failed.authentication.delay.ms": "0",
    }
    with Broker(properties=given) as broker:
        yield Cluster(broker)


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A broker whose authorizer is `ReadersOnly`, with a record in each of two topics."""
    with serving(f"{HERE}:ReadersOnly") as cluster:
        fill(cluster, "open", "closed")
        yield cluster


def fill(cluster: Cluster, *topics: str) -> None:
    with cluster.admin() as admin:
        admin.create_topics([NewTopic(name, 1) for name in topics])
    producer = confluent_kafka.Producer(cluster.user("carol"))
    for name in topics:
        producer.produce(name, b"of " + name.encode())
    assert producer.flush(60) == 0


def first_value(settings: Properties, topic: str) -> bytes:
    """The value of a topic's first record, by librdkafka."""
    consumer = confluent_kafka.Consumer({**settings, "group.id": "readers"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        return bytes(message.value())
    finally:
        consumer.close()


def may_read(settings: Properties, topic: str) -> bool:
    """Whether our own client gets a topic's records."""
    with Fetcher(settings["bootstrap.servers"], settings) as fetcher:
        fetcher.assign({TopicPartition(topic, 0): 0})
        try:
            return bool(fetcher.poll(60))
        except BrokerError as error:
            if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise
            return False


def may_write(settings: Properties, topic: str) -> bool:
    """Whether librdkafka writes a record."""
    errors: list[Any] = []
    producer = confluent_kafka.Producer({**settings, "message.timeout.ms": 60_000})
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors[0] is None or errors[0].code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return errors[0] is None


@pytest.mark.parametrize("how", ["password", "certificate"])
def test_who_a_builder_calls_a_reader_reads_what_an_authorizer_of_ones_own_allows(own: Cluster, how: str) -> None:
    settings = own.user("alice") if how == "password" else own.owner("reader")
    assert first_value(settings, "open") == b"of open"
    assert not may_read(settings, "closed")
    assert not may_write(settings, "open")
    requested = set(ReadersOnly.requested)
    assert Requested(READERS, "127.0.0.1", "READ", "TOPIC", "open") in requested
    assert Requested(READERS, "127.0.0.1", "WRITE", "TOPIC", "open") in requested


def test_another_certificate_is_another_principal(own: Cluster) -> None:
    assert not may_read(own.owner("stranger"), "open")
    assert {one.principal for one in ReadersOnly.requested} >= {"User:CN=stranger"}


def test_what_an_authorizer_of_ones_own_hides_is_in_no_list(own: Cluster) -> None:
    with own.admin("bob") as admin:
        assert [name for name in admin.list_topics(internal=True) if not name.startswith("__")] == ["open"]


def test_an_authorizer_that_fails_denies_and_its_failure_is_logged(
    own: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with own.admin() as admin, pytest.raises(BrokerError) as raised:
        admin.describe_topics(["trap"])
    assert raised.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert f"The authorizer {HERE}:ReadersOnly failed: denying the operation" in caplog.text


def test_whom_a_builder_fails_at_is_let_in_nowhere(own: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(AuthenticationError), own.admin("nobody") as admin:
        admin.list_topics()
    assert f"the principal builder {HERE}:Groups failed: LookupError" in caplog.text


def test_entries_name_groups_that_a_builder_has_made() -> None:
    with serving(STANDARD) as cluster:
        fill(cluster, "of-group", "of-nobody")
        assert not may_read(cluster.user("alice"), "of-group")
        with cluster.admin() as admin:
            admin.create_acls([Acl(AclPattern(TOPIC, "of-group", LITERAL), READERS, "*", READ, ALLOW)])
            wait_until(lambda: len(admin.describe_acls(AclFilter(principal=READERS))) == 1, within=60, what="the entry")
        for settings in (cluster.user("alice"), cluster.user("bob"), cluster.owner("reader")):
            assert may_read(settings, "of-group")
            assert not may_read(settings, "of-nobody")
        assert not may_read(cluster.owner("stranger"), "of-group")
