"""Nodes that Kafka takes and refuses, with its own sentences; an oracle says them anew where Java is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.roles import heartbeat_warning
from tests.support import java_oracle

Given = dict[str, str]
Changes = dict[str, str | None]

# What Kafka's controller.properties, broker.properties and server.properties say of these keys.
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "CONTROLLER://:9093",
    "advertised.listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
}
BROKER = {
    "process.roles": "broker",
    "node.id": "2",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
}
BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
}
_MAP = "listener.security.protocol.map"
_NAMES = "controller.listener.names"
_SERVERS = "controller.quorum.bootstrap.servers"
_VOTERS = "controller.quorum.voters"
_INNER = "inter.broker.listener.name"
_ADVERTISED = "advertised.listeners"
_ALL = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,X:PLAINTEXT"


def changed(base: Given, changes: Changes) -> Given:
    """The settings with others in place, None for those that are left out."""
    merged = {**base, **changes}
    return {name: value for name, value in merged.items() if value is not None}


TAKEN: list[tuple[Given, Changes]] = [
    (CONTROLLER, {}),
    (BROKER, {}),
    (BOTH, {}),
    (CONTROLLER, {_SERVERS: None, _VOTERS: "1@localhost:9093,2@localhost:9094"}),
    (BROKER, {_SERVERS: None, _VOTERS: "1@localhost:9093,3@localhost:9094"}),
    (BOTH, {_SERVERS: None, _VOTERS: "1@localhost:9093"}),
    (BOTH, {_VOTERS: "1@localhost:9093"}),
    (CONTROLLER, {_ADVERTISED: None}),
    (CONTROLLER, {_ADVERTISED: "PLAINTEXT://h:1"}),
    (CONTROLLER, {"security.inter.broker.protocol": "SSL"}),
    (BROKER, {_ADVERTISED: None, _INNER: None}),
    (BROKER, {_ADVERTISED: "PLAINTEXT://h:1,CONTROLLER://h:2"}),
    (BROKER, {_NAMES: "CONTROLLER,X", _MAP: _ALL}),
    (BROKER, {_NAMES: "X", _MAP: None}),
    (BROKER, {_NAMES: "CONTROLLER,CONTROLLER"}),
    (BROKER, {"process.roles": "broker,broker"}),
    (BOTH, {"listeners": "PLAINTEXT://:0,CONTROLLER://:0"}),
    (BOTH, {_ADVERTISED: "PLAINTEXT://h:1"}),
    (BOTH, {_INNER: "plaintext"}),
    (BOTH, {"node.id": None, "broker.id": "1"}),
    (BOTH, {"broker.heartbeat.interval.ms": "9000"}),
    (BOTH, {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}),
    (BOTH, {"controller.quorum.auto.join.enable": "false"}),
]

_QUORUM = (
    "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap controllers "
    "or controller.quorum.voters must contain a parseable set of controllers."
)
_OF_ADVERTISED = (
    "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based on "
    "currently configured listeners are "
)
_NO_LISTENER = (
    "There must be at least one broker advertised listener. Perhaps all listeners appear in controller.listener.names?"
)
_ONLY_BROKER = (
    "controller.listener.names must not contain a value appearing in the 'listeners' configuration when running KRaft "
    "with just the broker role"
)
_ONLY_CONTROLLER = (
    "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
    "process.roles=controller"
)
_NOT_IN_LISTENERS = (
    "controller.listener.names must only contain values appearing in the 'listeners' configuration when running the "
    "KRaft controller role"
)
_NONE_IN_LISTENERS = (
    "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when running "
    "the KRaft controller role"
)

ANY = (CONTROLLER, BROKER, BOTH)
_MISSING = 'Missing required configuration "{}" which has no default value.'


def of_each(bases: tuple[Given, ...], changes: Changes, sentence: str) -> list[tuple[Given, Changes, str]]:
    """The same fault of several nodes."""
    return [(base, changes, sentence) for base in bases]


REFUSED: list[tuple[Given, Changes, str]] = [
    *of_each(ANY, {_SERVERS: None}, _QUORUM),
    *of_each(ANY, {_SERVERS: ""}, _QUORUM),
    *of_each(ANY, {"node.id": None}, _MISSING.format("node.id")),
    *of_each(ANY, {"process.roles": None}, _MISSING.format("process.roles")),
    *of_each(ANY, {_NAMES: None}, _MISSING.format(_NAMES)),
    (
        BROKER,
        {_NAMES: ""},
        "Configuration 'controller.listener.names' must not be empty. Valid values include: any non-empty value",
    ),
    *of_each(
        (CONTROLLER, BOTH),
        {_VOTERS: "9@h:9093"},
        "If process.roles contains the 'controller' role, the node id 1 must be included in the set of voters "
        "controller.quorum.voters=Set(9)",
    ),
    (
        BROKER,
        {_VOTERS: "1@h:9093,2@h:9093", _SERVERS: None},
        (
            "If process.roles contains just the 'broker' role, the node id 2 must not be included in the set of voters "
            "controller.quorum.voters=Set(1, 2)"
        ),
    ),
    (BROKER, {"listeners": "CONTROLLER://:1"}, _ONLY_BROKER),
    (BROKER, {_NAMES: "PLAINTEXT"}, _ONLY_BROKER),
    (
        BROKER,
        {_MAP: "PLAINTEXT:PLAINTEXT"},
        (
            "Controller listener with name CONTROLLER defined in controller.listener.names not found in "
            "listener.security.protocol.map  (an explicit security mapping for each controller listener is required if "
            "listener.security.protocol.map is non-empty, or if there are security protocols other than PLAINTEXT in "
            "use)"
        ),
    ),
    (CONTROLLER, {"listeners": "PLAINTEXT://:1", _ADVERTISED: None}, _ONLY_CONTROLLER),
    (CONTROLLER, {"listeners": None, _ADVERTISED: None}, _ONLY_CONTROLLER),
    (CONTROLLER, {"listeners": "PLAINTEXT://:0,CONTROLLER://:0"}, _ONLY_CONTROLLER),
    (CONTROLLER, {_NAMES: "CONTROLLER,PLAINTEXT"}, _NOT_IN_LISTENERS),
    (
        CONTROLLER,
        {_INNER: "CONTROLLER"},
        (
            "controller.listener.names must not contain an explicitly set inter.broker.listener.name configuration "
            "value when process.roles=controller'"
        ),
    ),
    (BOTH, {_NAMES: "CONTROLLER,X", _MAP: _ALL}, _NOT_IN_LISTENERS),
    (BOTH, {"listeners": "PLAINTEXT://:1", _ADVERTISED: None}, _NONE_IN_LISTENERS),
    (BOTH, {"listeners": "CONTROLLER://:1", _ADVERTISED: None}, _NO_LISTENER),
    (BOTH, {_NAMES: "CONTROLLER,PLAINTEXT"}, _NO_LISTENER),
    (BOTH, {_ADVERTISED: "CONTROLLER://h:1"}, _NO_LISTENER),
    (BROKER, {_ADVERTISED: "CONTROLLER://h:1"}, _NO_LISTENER),
    (
        BOTH,
        {_INNER: "X"},
        "Listener with name X defined in inter.broker.listener.name not found in listener.security.protocol.map.",
    ),
    (BOTH, {_INNER: ""}, "The provided listener name is null or empty string"),
    (
        BOTH,
        {"security.inter.broker.protocol": "PLAINTEXT"},
        "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
    ),
    (BOTH, {_INNER: "CONTROLLER"}, _OF_ADVERTISED + "PLAINTEXT"),
    (BOTH, {_INNER: None, "security.inter.broker.protocol": "SSL"}, _OF_ADVERTISED + "PLAINTEXT"),
    (BROKER, {"listeners": "X://:1", _ADVERTISED: None, _INNER: None, _MAP: _ALL}, _OF_ADVERTISED + "X"),
    (BROKER, {_ADVERTISED: "X://h:1", _MAP: _ALL}, _OF_ADVERTISED + "X"),
    (
        BOTH,
        {_ADVERTISED: "X://h:1,PLAINTEXT://h:2", _MAP: _ALL},
        (
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found "
            "X,PLAINTEXT. The valid options based on the current configuration are PLAINTEXT,CONTROLLER"
        ),
    ),
    (
        BROKER,
        {_ADVERTISED: "PLAINTEXT://0.0.0.0:1"},
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
    ),
    (BOTH, {"broker.id": "7"}, "You must set `node.id` to the same value as `broker.id`."),
]


@pytest.mark.parametrize(("base", "changes"), TAKEN, ids=str)
def test_a_node_that_kafka_takes_is_taken(base: Given, changes: Changes) -> None:
    assert BrokerConfig(changed(base, changes)).unknown == ()


@pytest.mark.parametrize(("base", "changes", "sentence"), REFUSED, ids=str)
def test_a_node_that_kafka_refuses_is_refused_in_its_words(base: Given, changes: Changes, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(changed(base, changes))
    assert str(refused.value) == sentence


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("ConfigOracle") as running:
        yield running


@pytest.mark.java
def test_the_tables_of_nodes_are_kafkas(oracle: java_oracle.JavaOracle) -> None:
    def reported(given: Given) -> str | None:
        fault = oracle.query("node", configs=given).get("fault")
        return None if fault is None else str(fault).removeprefix("requirement failed: ")

    assert [(changes, words) for base, changes in TAKEN if (words := reported(changed(base, changes)))] == []
    differing = [
        (changes, words, sentence)
        for base, changes, sentence in REFUSED
        if (words := reported(changed(base, changes))) != sentence
    ]
    assert differing == []


def test_a_node_opens_the_listeners_of_its_roles() -> None:
    config = BrokerConfig(BOTH)
    assert (config.is_broker, config.is_controller, config.is_single) == (True, True, False)
    assert [one.endpoint.name for one in config.broker_endpoints] == ["PLAINTEXT"]
    assert [str(one.advertised) for one in config.controller_endpoints] == ["CONTROLLER://localhost:9093"]
    assert BrokerConfig(BROKER).controller_endpoints == ()
    assert BrokerConfig(CONTROLLER).broker_endpoints == ()


def test_the_quorum_is_made_of_values() -> None:
    config = BrokerConfig(changed(BOTH, {_VOTERS: "3@c:9,1@a:7"}))
    assert [str(voter) for voter in config.quorum_voters] == ["1@a:7", "3@c:9"]
    assert config.quorum_bootstrap_servers == (("localhost", 9093),)


@pytest.mark.parametrize(
    ("given", "makes_it"),
    [
        ({}, True),
        (changed(BOTH, {_SERVERS: None, _VOTERS: "1@localhost:9093"}), True),
        (changed(BOTH, {_SERVERS: None, _VOTERS: "1@localhost:9093,2@localhost:9094"}), False),
        (BOTH, False),
        (BROKER, False),
        (changed(CONTROLLER, {_SERVERS: None, _VOTERS: "1@localhost:9093"}), False),
    ],
)
def test_a_node_makes_a_cluster_of_its_own_only_when_it_is_alone(given: Given, makes_it: bool) -> None:
    assert BrokerConfig(given).makes_its_cluster is makes_it


def test_a_single_node_may_call_its_listeners_as_it_likes() -> None:
    config = BrokerConfig({"listeners": "A://:1,B://:2", _MAP: "A:PLAINTEXT,B:PLAINTEXT"})
    assert (config.is_single, config.inter_broker_listener) == (True, "A")
    assert BrokerConfig({}).inter_broker_listener == "PLAINTEXT"
    assert BrokerConfig(BOTH).inter_broker_listener == "PLAINTEXT"


def test_the_old_name_of_the_node_id_speaks_where_the_new_one_does_not() -> None:
    assert BrokerConfig({"broker.id": "7"}).node_id == 7
    assert BrokerConfig({"node.id": "7"}).broker_id == 7


def test_a_broker_connects_to_encrypted_listeners_of_controllers() -> None:
    given: dict[str, str | None] = {
        _MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "listener.name.controller.ssl.truststore.location": "ca.p12",
    }
    assert BrokerConfig(changed(BROKER, given)).client_of_controllers() == {
        "security.protocol": "SSL",
        "ssl.truststore.location": "ca.p12",
    }


def test_a_node_that_is_no_controller_joins_no_quorum() -> None:
    auto_join = "controller.quorum.auto.join.enable"
    assert BrokerConfig(changed(CONTROLLER, {auto_join: "true"})).controller_quorum_auto_join_enable
    with pytest.raises(
        ConfigError, match=f"{auto_join} is only supported when process.roles contains the 'controller'"
    ):
        BrokerConfig(changed(BROKER, {auto_join: "true"}))


def test_a_heartbeat_that_is_too_rare_for_the_session_is_said() -> None:
    assert heartbeat_warning(BrokerConfig({"broker.heartbeat.interval.ms": "4500"})) is None
    warning = heartbeat_warning(BrokerConfig({"broker.heartbeat.interval.ms": "4501"}))
    assert warning is not None
    assert warning.startswith("broker.heartbeat.interval.ms (4501 ms) must be less than or equal to half of")
