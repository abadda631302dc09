"""Stores are read again when they have changed, and what cannot be read changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybroker.client.security.renewed import RenewedSecurity
from pybroker.client.settings import ConnectionSettings
from pybroker.config.errors import ConfigError
from pybroker.testing.certificates import Authority


def properties(store: Path) -> dict[str, str]:
    return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(store)}


def replace(store: Path, text: str) -> None:
    """Put another file in a store's place, as a rotation does."""
    beside = store.with_suffix(".next")
    beside.write_text(text)
    os.replace(beside, store)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = tmp_path / "ca.pem"
    made.write_text(Authority().pem)
    return made


def test_connections_are_secured_by_what_the_files_hold_now(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    security = RenewedSecurity("connections to controllers", properties(store))
    settings = ConnectionSettings({})
    security.secure(settings)
    first = settings.tls
    assert first is not None
    security.secure(settings)
    assert settings.tls is first
    replace(store, Authority().pem)
    security.secure(settings)
    assert settings.tls not in (None, first)
    second = settings.tls
    replace(store, "no certificate")
    security.secure(settings)
    assert settings.tls is second
    assert "Keeping the previous TLS settings of connections to controllers" in caplog.text


def test_changed_settings_hold_for_what_comes(store: Path) -> None:
    security = RenewedSecurity("connections", properties(store))
    before = security.tls
    security.reconfigure(properties(store))
    assert security.tls is before
    security.reconfigure({**properties(store), "ssl.enabled.protocols": "TLSv1.3"})
    assert security.tls is not before
    assert security.credentials is None


def test_a_store_that_is_not_there_is_said_before_anything_is_begun(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"connections: ssl\.truststore\.location=.*No such file"):
        RenewedSecurity("connections", properties(tmp_path / "none.pem"))


def test_a_token_is_not_asked_for_again_because_a_store_has_changed(
    store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = "sasl.oauthbearer.token.endpoint.url"
    (tmp_path / "token").write_text("e.y.J")
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", url: f"file://{tmp_path}/token"}
    given = {**properties(store), **login}
    security = RenewedSecurity("connections", given)
    tls, credentials = security.tls, security.credentials
    (tmp_path / "token").unlink()
    replace(store, Authority().pem)
    assert security.tls is not tls
    assert security.credentials is credentials
    security.reconfigure({**given, url: "https://localhost:1/token"})
    assert security.credentials is credentials
    assert "a change of the token server needs a restart" in caplog.text


def test_a_location_that_can_be_no_path_leaves_connections_secured(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    security = RenewedSecurity("connections", properties(store))
    security.reconfigure(properties(Path("a\0b")))
    assert security.tls is not None
    assert "Keeping the previous TLS settings of connections" in caplog.text
    with pytest.raises(ConfigError, match=r"connections: .*null byte"):
        RenewedSecurity("connections", properties(Path("a\0b")))
