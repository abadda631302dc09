from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.endpoint import Endpoint, parse_endpoint
from pybroker.config.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("PLAINTEXT://localhost:9092", Endpoint("PLAINTEXT", "localhost", 9092)),
        ("plaintext://:0", Endpoint("PLAINTEXT", "", 0)),
        ("INNER://[::1]:9092", Endpoint("INNER", "::1", 9092)),
    ],
)
def test_an_endpoint_has_name_host_and_port(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint("listeners", text) == endpoint


@pytest.mark.parametrize("port", ["9" * 5000, "655360", "000001"])
def test_a_port_has_five_digits_at_most(port: str) -> None:
    with pytest.raises(ConfigError, match="a port is from 0 to 65535"):
        parse_endpoint("listeners", f"PLAINTEXT://h:{port}")


@pytest.mark.parametrize(
    "text", ["A://h:\u0663", "localhost:9092", "A://h", "A://h:99999", "A://::1:9092", "A://h:x", "://h:1"]
)
def test_what_is_no_endpoint_is_reported(text: str) -> None:
    with pytest.raises(ConfigError, match="expected NAME://host:port"):
        parse_endpoint("listeners", text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"listeners": ""}, "expected NAME://host:port"),
        ({"listeners": "PLAINTEXT://h:99999"}, "listeners=PLAINTEXT://h:99999: .*; a port is from 0 to 65535"),
        ({"advertised.listeners": "PLAINTEXT://h:655360"}, "advertised.listeners=.*a port is from 0 to 65535"),
        ({"listeners": "A://h:1"}, "a protocol for A in listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"}, "each name once"),
        (
            {"listeners": "A://h:1,B://h:1", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"},
            "each address once",
        ),
        (
            {"advertised.listeners": "X://h:1"},
            "Found X. The valid options based on the current configuration are PLAINTEXT",
        ),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "cannot use the nonroutable meta-address 0.0.0.0"),
        ({"advertised.listeners": "PLAINTEXT://[::]:1"}, "a host that clients can connect to"),
        ({"advertised.listeners": "PLAINTEXT://h:0"}, "a port that clients can connect to"),
        ({"listener.security.protocol.map": "A:TLS"}, "NAME:PROTOCOL"),
    ],
)
def test_listeners_that_contradict_each_other_are_reported(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig(given)


def test_an_advertised_address_belongs_to_the_listener_of_its_name() -> None:
    config = BrokerConfig({"advertised.listeners": "PLAINTEXT://example.org:19092"})
    assert [listener.advertised for listener in config.endpoints] == [Endpoint("PLAINTEXT", "example.org", 19092)]
