from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.dynamic import build_dynamic, dynamic_fault

SINGLE = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:9092"})
NODE = BrokerConfig(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,NEW:PLAINTEXT,ASK:SASL_PLAINTEXT",
    }
)
ADVERTISED = BrokerConfig({**NODE.given, "advertised.listeners": "PLAINTEXT://broker:9092"})
WITH_NEW = BrokerConfig({**NODE.given, "listeners": f"{NODE.given['listeners']},NEW://127.0.0.1:9094"})
BOTH = "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
MAP = "listener.security.protocol.map"


def test_listeners_come_and_go_with_changes() -> None:
    own = {"listeners": f"{BOTH},NEW://127.0.0.1:9094"}
    made, ignored = build_dynamic(NODE, {}, own)
    assert ignored == ()
    assert [one.endpoint.name for one in made.broker_endpoints] == ["PLAINTEXT", "NEW"]
    assert [one.endpoint.name for one in made.controller_endpoints] == ["CONTROLLER"]
    for static in (NODE, ADVERTISED):
        made = build_dynamic(static, {}, own).config
        assert dynamic_fault(static, static, own, is_own=True) is None
        assert dynamic_fault(static, made, {}, is_own=True) is None
    assert [one.endpoint.name for one in NODE.endpoints] == ["PLAINTEXT", "CONTROLLER"]


def test_a_listener_comes_with_its_protocol() -> None:
    own = {"listeners": f"{SINGLE.given['listeners']},INNER://127.0.0.1:9094"}
    assert dynamic_fault(SINGLE, SINGLE, own, is_own=True) == (
        "listeners=INNER://127.0.0.1:9094: expected a protocol for INNER in listener.security.protocol.map"
    )
    assert build_dynamic(SINGLE, {}, own).config.endpoints == SINGLE.endpoints, "it is left out"
    own[MAP] = "PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT"
    assert dynamic_fault(SINGLE, SINGLE, own, is_own=True) is None
    assert build_dynamic(SINGLE, {}, own).config.endpoints[1].protocol == "PLAINTEXT"


@pytest.mark.parametrize(
    ("static", "configs", "words"),
    [
        (
            NODE,
            {"listeners": "CONTROLLER://127.0.0.1:9093,NEW://127.0.0.1:9094"},
            (
                "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options "
                "based on currently configured listeners are NEW"
            ),
        ),
        (
            NODE,
            {"listeners": "PLAINTEXT://127.0.0.1:9092,NEW://127.0.0.1:9094"},
            (
                "controller.listener.names must contain at least one value appearing in the 'listeners' configuration "
                "when running the KRaft controller role"
            ),
        ),
        (
            ADVERTISED,
            {"listeners": "CONTROLLER://127.0.0.1:9093,NEW://127.0.0.1:9094"},
            (
                "advertised.listeners listener names must be equal to or a subset of the ones defined in "
                "listeners. Found PLAINTEXT. The valid options based on the current configuration are CONTROLLER,NEW"
            ),
        ),
        (
            NODE,
            {"listeners": BOTH.replace("9092", "9095")},
            (
                "Configs cannot be updated dynamically for existing listener ListenerName(PLAINTEXT), restart "
                "broker or create a new listener for update"
            ),
        ),
        (
            WITH_NEW,
            {
                MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,NEW:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            },
            "Security protocol cannot be updated for existing listener ListenerName(NEW)",
        ),
        (
            NODE,
            {"listeners": f"{BOTH},ASK://127.0.0.1:9094", "sasl.enabled.mechanisms": "SCRAM-SHA-256"},
            (
                "listeners=ASK://127.0.0.1:9094: expected a listener without SASL: the first listener "
                "that authenticates clients needs a restart"
            ),
        ),
        (
            NODE,
            {"advertised.listeners": "PLAINTEXT://x:1"},
            "Cannot update these configs dynamically: [advertised.listeners]",
        ),
    ],
)
def test_what_cannot_be_is_said(static: BrokerConfig, configs: dict[str, str], words: str) -> None:
    assert words in (dynamic_fault(static, static, configs, is_own=True) or "")


def test_the_first_listener_of_a_single_node_is_that_between_brokers() -> None:
    named = BrokerConfig({"listeners": "A://127.0.0.1:1,B://127.0.0.1:2", MAP: "A:PLAINTEXT,B:PLAINTEXT"})
    assert dynamic_fault(named, named, {"listeners": "A://127.0.0.1:1"}, is_own=True) is None
    assert "inter.broker.listener.name" in (
        dynamic_fault(named, named, {"listeners": "B://127.0.0.1:2"}, is_own=True) or ""
    )
