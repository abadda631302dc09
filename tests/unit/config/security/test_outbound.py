"""What a node connects with is what the listener that it connects to has, and what is missing is said."""

from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.security.oauth import LOGIN_CLASS, UNSECURED_CLASS, UNSECURED_LOGIN_CLASS

BROKER = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "INTERNAL://localhost:9092",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CONTROLLER:SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="b" password="p" user_b="p";'
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="b" password="secret";'
JAAS = "listener.name.internal.plain.sasl.jaas.config"
LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
BEARER_JAAS = "listener.name.internal.oauthbearer.sasl.jaas.config"
URL = "sasl.oauthbearer.token.endpoint.url"
BEARER = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "oauthbearer.sasl.server.callback.handler.class": UNSECURED_CLASS,
}
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=k principal='kafka/b'"


def test_a_listeners_own_stores_and_users_go_before_those_of_all() -> None:
    given = {
        "ssl.truststore.location": "all.p12",
        "ssl.keystore.location": "own.p12",
        "listener.name.controller.ssl.truststore.location": "controllers.pem",
        "listener.name.controller.ssl.endpoint.identification.algorithm": "",
    }
    made = BrokerConfig({**BROKER, JAAS: PLAIN, **given})
    assert made.client_of_controllers() == {
        "security.protocol": "SSL",
        "ssl.truststore.location": "controllers.pem",
        "ssl.keystore.location": "own.p12",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert made.client_of_brokers() == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": PLAIN,
    }


def test_another_mechanism_has_its_own_user() -> None:
    given = {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512", "scram-sha-512.sasl.jaas.config": SCRAM}
    assert BrokerConfig({**BROKER, JAAS: PLAIN, **given}).client_of_brokers()["sasl.jaas.config"] == SCRAM


def test_a_token_comes_from_a_server_with_the_listeners_own_settings_before_those_of_all() -> None:
    given = {
        URL: "https://all/token",
        f"listener.name.internal.{URL}": "https://own/token",
        "sasl.oauthbearer.client.credentials.client.id": "broker",
        "listener.name.internal.sasl.oauthbearer.client.credentials.client.secret": "secret",
        "sasl.login.refresh.window.factor": "0.6",
        "oauthbearer.sasl.login.callback.handler.class": LOGIN_CLASS,
    }
    assert BrokerConfig({**BROKER, **BEARER, **given}).client_of_brokers() == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        URL: "https://own/token",
        "sasl.oauthbearer.client.credentials.client.id": "broker",
        "sasl.oauthbearer.client.credentials.client.secret": "secret",
        "sasl.login.refresh.window.factor": "0.6",
    }


def test_a_token_that_nobody_signs_and_a_ticket_follow_from_the_login_module() -> None:
    made = f"{LOGIN} unsecuredLoginStringClaim_sub=b;"
    assert BrokerConfig({**BROKER, **BEARER, BEARER_JAAS: made}).client_of_brokers() == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": made,
    }
    controllers = {
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CONTROLLER:SASL_SSL",
        "listener.name.controller.gssapi.sasl.jaas.config": f"{KERBEROS};",
    }
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.service\.name=: expected the first part of the nodes'"):
        BrokerConfig({**BROKER, **controllers})
    found = BrokerConfig({**BROKER, **controllers, "sasl.kerberos.service.name": "kafka"}).client_of_controllers()
    assert (found["sasl.mechanism"], found["sasl.kerberos.service.name"]) == ("GSSAPI", "kafka")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            r"sasl\.mechanism\.inter\.broker\.protocol \(SCRAM-SHA-256\) must be included in sasl\.enabled\.mechanisms",
        ),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}, r"the user that this node authenticates as"),
        ({JAAS: PLAIN.replace('username="b" password="p" ', "")}, r"the user that this node authenticates as"),
        (
            {"listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_SSL"},
            r"sasl\.mechanism\.controller\.protocol=GSSAPI: expected one of PLAIN, .*the default, needs this node's",
        ),
        ({"sasl.mechanism.inter.broker.protocol": "X", "sasl.enabled.mechanisms": "PLAIN"}, "must be included in"),
        (BEARER, "the source of this node's tokens: an address as sasl.oauthbearer.token.endpoint.url"),
        (
            {**BEARER, BEARER_JAAS: f"{LOGIN} unsecuredLoginStringClaim_sub=b;", URL: "file:///t"},
            "only one of the two: the source",
        ),
        (
            {**BEARER, URL: "file:///t", "oauthbearer.sasl.login.callback.handler.class": UNSECURED_LOGIN_CLASS},
            f"{UNSECURED_LOGIN_CLASS}: expected {LOGIN_CLASS}, or nothing",
        ),
        ({**BEARER, URL: "file:///t", "oauthbearer.sasl.login.callback.handler.class": "a.B"}, "no class: none is"),
    ],
)
def test_who_cannot_say_who_it_is_does_not_start(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        BrokerConfig({**BROKER, JAAS: PLAIN, **given})
    assert "secret" not in str(caught.value).partition(", as in ")[0]
