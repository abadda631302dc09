from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9404", ("127.0.0.1", 9404)),
        ("[::1]:0", ("::1", 0)),
        ("metrics.internal:65535", ("metrics.internal", 65535)),
    ],
)
def test_the_admin_listener_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert BrokerConfig({"admin.http.listener": text}).admin_http_address == address


@pytest.mark.parametrize("text", ["9404", "127.0.0.1", "127.0.0.1:65536", "http://127.0.0.1:9404", "::1:9404"])
def test_what_is_no_host_and_port_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"admin\.http\.listener.*host:port"):
        BrokerConfig({"admin.http.listener": text})


def test_there_is_none_by_default() -> None:
    assert BrokerConfig({}).admin_http_address is None
