"""Secured test brokers: what clients get for them, and that it is enough."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from pybroker.client.administration.admin import Admin
from pybroker.client.errors import ClientError
from pybroker.testing import AsyncBroker, Broker
from pybroker.testing.security import MECHANISMS, Security


def listed(broker: Broker, user: str | None, mechanism: str = "PLAIN") -> int:
    """How many brokers a user finds by librdkafka, and by pybroker.client."""
    found = len(AdminClient(broker.client_settings(user, mechanism=mechanism)).list_topics(timeout=60).brokers)
    with Admin(broker.bootstrap_servers, broker.client_properties(user, mechanism=mechanism)) as admin:
        admin.list_topics()
    return found


def test_users_log_in_by_every_mechanism_also_after_a_restart_and_a_reset() -> None:
    with Broker(security="SASL_SSL", users={"carol": 'a "secret" \\'}) as broker:
        for mechanism in MECHANISMS:
            assert listed(broker, "carol", mechanism) == 1
        broker.restart()
        assert listed(broker, None, "SCRAM-SHA-256") == 1
        broker.reset()
        assert listed(broker, None, "SCRAM-SHA-512") == 1


_IMPATIENT = {"default.api.timeout.ms": "2000", "request.timeout.ms": "1000"}


def test_a_client_of_ssl_needs_no_certificate_and_may_have_one() -> None:
    with Broker(security="SSL") as broker:
        assert listed(broker, None) == 1
        assert listed(broker, "carol") == 1
        with pytest.raises(ClientError), Admin(broker.bootstrap_servers, _IMPATIENT) as plain:
            plain.list_topics()


def test_without_security_there_is_nothing_but_the_address() -> None:
    with Broker() as broker:
        address = {"bootstrap.servers": broker.bootstrap_servers}
        assert broker.client_settings() == broker.client_properties() == address


async def test_code_in_an_event_loop_has_the_same() -> None:
    async with AsyncBroker(security="SASL_PLAINTEXT") as broker:
        settings = broker.client_settings("bob")
        assert (settings["sasl.username"], settings["sasl.password"]) == ("bob", "bob-secret")
        assert "bob-secret" in broker.client_properties("bob")["sasl.jaas.config"]


def test_what_cannot_be_had_is_refused_with_what_can() -> None:
    for make, words in (
        (lambda: Broker(security="TLS"), "expected one of SSL, SASL_PLAINTEXT, SASL_SSL"),
        (lambda: Broker(users={"a": "b"}), "users need security SASL"),
        (lambda: Broker(security="SSL", users={"a": "b"}), "has no passwords"),
        (lambda: Broker(security="SASL_SSL", users={"a": ""}), "expected a password for each"),
        (lambda: Security("SASL_PLAINTEXT").client_settings("eve", "PLAIN"), "expected one of alice, bob"),
        (lambda: Security("SASL_PLAINTEXT").client_properties("bob", "GSSAPI"), "expected one of PLAIN"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
