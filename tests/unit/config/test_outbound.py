"""What a node connects with is what the listener that it connects to has, and what is missing is said."""

from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError

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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            r"sasl\.mechanism\.inter\.broker\.protocol \(SCRAM-SHA-256\) must be included in sasl\.enabled\.mechanisms",
        ),
        ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"}, r"the user that this node is for others"),
        ({JAAS: PLAIN.replace('username="b" password="p" ', "")}, r"the user that this node is for others"),
        (
            {"listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_SSL"},
            r"sasl\.mechanism\.controller\.protocol=GSSAPI: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
    ],
)
def test_who_cannot_say_who_it_is_does_not_start(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        BrokerConfig({**BROKER, JAAS: PLAIN, **given})
    assert "secret" not in str(caught.value).partition(", as in ")[0]
