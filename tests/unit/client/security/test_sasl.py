"""Credentials from settings: where they may stand, what is refused, and that nobody sees them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pybroker.client.errors import SettingError
from pybroker.client.security import open_security
from pybroker.client.settings import AdminSettings

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def first_token(mechanism: str, **properties: Any) -> bytes:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, **properties}
    settings = AdminSettings.of_client("h:1", given)
    open_security(settings)
    credentials = settings.credentials
    assert credentials is not None
    assert credentials.mechanism == mechanism
    return credentials.begin("h")[1]


def test_a_user_stands_in_a_login_module_or_alone() -> None:
    jaas = f'{PLAIN} required username="alice" password="s3cret";'
    assert first_token("PLAIN", **{"sasl.jaas.config": jaas}) == b"\0alice\0s3cret"
    assert first_token("PLAIN", **{"sasl.username": "alice", "sasl.password": "s3cret"}) == b"\0alice\0s3cret"


def test_a_delegation_token_says_that_it_is_one() -> None:
    jaas = f'{SCRAM} required username="id" password="hmac" tokenauth="true";'
    assert first_token("SCRAM-SHA-256", **{"sasl.jaas.config": jaas}).endswith(b",tokenauth=true")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sasl.mechanism": "X"}, "sasl.mechanism=X: must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSS"),
    ({"sasl.mechanism": "PLAIN"}, "needs a username"),
    ({"sasl.mechanism": "PLAIN", "sasl.username": "alice"}, "needs a password"),
    ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{SCRAM} required username="a" password="s3cret";'}, "needs the"),
    ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN} required username="a" password="s3cret"'}, "semicolon"),
    (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{PLAIN} required;", "sasl.password": "s3cret"},
        "set only one of them",
    ),
    ({"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "s3cret\0"}, "NUL"),
    ({"sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.token.endpoint.url"),
    ({"sasl.mechanism": "PLAIN", "sasl.passwort": "s3cret"}, "no such setting"),
]


@pytest.mark.parametrize(("properties", "words"), WRONG, ids=lambda it: str(it)[:50])
def test_what_cannot_sign_in_is_refused_without_a_secret(properties: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words) as error:
        open_security(AdminSettings.of_client("h:1", {"security.protocol": "SASL_PLAINTEXT", **properties}))
    assert "s3cret" not in str(error.value)


def test_no_repr_and_no_warning_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "s3cret",
        "ssl.keystore.password": "s3cret",
    }
    with caplog.at_level(logging.DEBUG):
        settings = AdminSettings.of_client("h:1", properties)
        open_security(settings)
    assert "s3cret" not in repr(settings) + repr(settings.credentials) + str(settings.credentials) + caplog.text
