from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.keys import opentelemetry_keys

ENDPOINT = "opentelemetry.endpoint"


def test_nothing_is_sent_by_default() -> None:
    assert BrokerConfig({}).export is None


def test_what_is_given_is_how_a_node_sends() -> None:
    given = {
        ENDPOINT: "https://metrics.internal:4318/push/",
        "opentelemetry.headers": "authorization=Bearer a=b, x-scope = team",
        "opentelemetry.interval.ms": "1500",
        "opentelemetry.timeout.ms": "500",
        "opentelemetry.traces.ratio": "0.25",
    }
    made = BrokerConfig(given).export
    assert made is not None
    assert made == ("https://metrics.internal:4318/push", made.headers, 1.5, 0.5, 0.25)
    assert made.headers == {"authorization": "Bearer a=b", "x-scope": "team"}
    assert "Bearer" not in repr(made)


@pytest.mark.parametrize("text", ["127.0.0.1:4318", "ftp://host:1", "http://", "http://host:99999", "http://host/?a=b"])
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"opentelemetry\.endpoint=.*: expected an address, such as http://"):
        BrokerConfig({ENDPOINT: text})


def test_headers_that_cannot_be_read_are_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match=r"opentelemetry\.headers=\[hidden\]: expected name=value, comma-separated"):
        BrokerConfig({ENDPOINT: "http://host:1", "opentelemetry.headers": "secret"})


@pytest.mark.parametrize("text", ["-0.1", "1.1", "many"])
def test_a_part_of_the_requests_is_between_none_and_all(text: str) -> None:
    with pytest.raises(ConfigError, match=r"opentelemetry\.traces\.ratio"):
        BrokerConfig({"opentelemetry.traces.ratio": text})


@pytest.mark.parametrize("missing", ["opentelemetry.sdk.no.such", "no.such.package"])
def test_an_address_is_refused_where_the_packages_that_send_are_missing(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opentelemetry_keys, "_PACKAGES", (missing,))
    packages = r"'opentelemetry-sdk>=1\.27' 'opentelemetry-exporter-otlp-proto-http>=1\.27'"
    with pytest.raises(ConfigError, match=rf"opentelemetry\.endpoint=http://host:1: .* pip install {packages}"):
        BrokerConfig({ENDPOINT: "http://host:1"})
