"""Limits of connections: a listener's own over those of the broker, and exceptions for addresses."""

from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.connections import ListenerConnections, parse_overrides
from pybroker.config.dynamic import build_dynamic, dynamic_fault
from pybroker.config.errors import ConfigError

TWO = {
    "listeners": "INNER://:9091,OUTER://:9092",
    "listener.security.protocol.map": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
    "inter.broker.listener.name": "INNER",
}


def test_a_listeners_own_limits_stand_over_those_of_the_broker() -> None:
    config = BrokerConfig(
        {
            **TWO,
            "max.connections": "100",
            "listener.name.outer.max.connections": "7",
            "listener.name.Outer.max.connection.creation.rate": "5",
        }
    )
    assert config.connections_of_listeners() == {
        "INNER": ListenerConnections(100, 2**31 - 1),
        "OUTER": ListenerConnections(7, 5),
    }


def test_limits_change_while_the_broker_runs() -> None:
    static = BrokerConfig(TWO)
    own = {"max.connections": "9", "listener.name.outer.max.connections": "3"}
    assert dynamic_fault(static, static, own, is_own=True) is None
    changed = build_dynamic(static, {"max.connection.creation.rate": "8"}, own).config
    assert changed.connections_of_listeners() == {
        "INNER": ListenerConnections(9, 8),
        "OUTER": ListenerConnections(3, 8),
    }


def test_a_listeners_limit_is_changed_for_one_broker_and_is_above_0() -> None:
    static = BrokerConfig(TWO)
    fault = dynamic_fault(static, static, {"listener.name.outer.max.connections": "0"}, is_own=True)
    assert fault is not None
    assert "listener.name.outer.max.connections=0: expected a whole number from 1" in fault
    assert dynamic_fault(static, static, {"listener.name.outer.max.connections": "1"}, is_own=False) is not None
    with pytest.raises(ConfigError, match="a whole number from 1"):
        BrokerConfig({**TWO, "listener.name.outer.max.connection.creation.rate": "some"})


def test_exceptions_are_pairs_of_host_and_number() -> None:
    assert parse_overrides("") == {}
    assert parse_overrides("127.0.0.1:7, host.example:8,[::1]:9") == {"127.0.0.1": 7, "host.example": 8, "::1": 9}
    for wrong in ("127.0.0.1", "host:", ":7", "a b:7", "host:-1"):
        with pytest.raises(ConfigError, match="host:number"):
            BrokerConfig({"max.connections.per.ip.overrides": wrong})


def test_no_connections_of_an_address_need_exceptions() -> None:
    with pytest.raises(ConfigError, match="it can be zero only if"):
        BrokerConfig({"max.connections.per.ip": "0"})
    BrokerConfig({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:7"})
