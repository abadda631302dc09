from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.faults import find_faults


def names(given: dict[str, str]) -> list[str]:
    return [fault.name for fault in find_faults(given)[0]]


def test_every_fault_is_found_at_once() -> None:
    given = {
        "num.network.threads": "0",
        "log.retention.ms": "0",
        "log.segment.bytes": "x",
        "queued.max.request.bytes": "5",
        "replica.fetch.wait.max.ms": "100000",
    }
    assert names(given) == sorted(given)


@pytest.mark.parametrize(
    "given",
    [
        {"node.id": "1", "broker.id": "2"},
        {"process.roles": "broker"},
        {"listeners": "PLAINTEXT//here"},
        {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER", "node.id": "1"},
        {"max.connections.per.ip.overrides": "here:x"},
        {"listeners": "A://:1", "listener.security.protocol.map": "A:NOTHING"},
    ],
)
def test_the_fault_of_a_start_is_among_them(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(given)
    assert str(refused.value) in [str(fault) for fault in find_faults(given)[0]]


def test_what_is_wrong_because_of_another_fault_is_left_out() -> None:
    assert names({"socket.request.max.bytes": "-5", "queued.max.request.bytes": "50"}) == ["socket.request.max.bytes"]
    assert names({"process.roles": "king", "controller.listener.names": "C"}) == ["process.roles"]


def test_right_settings_have_none() -> None:
    faults, config = find_faults({"node.id": "4", "nobody.knows": "x"})
    assert faults == []
    assert config is not None
    assert (config.node_id, config.unknown) == (4, ("nobody.knows",))
