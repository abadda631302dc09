"""GSSAPI from the client's side: the messages around a security context that a script plays, and where tickets are."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.client.errors import AuthenticationError, SettingError
from pybroker.client.native import SaslCredentials
from pybroker.client.security import kerberos, open_security
from pybroker.client.security.kerberos import MODULE, build_begin, build_store
from pybroker.client.settings import AdminSettings

OFFER = b"signed \1\0\0\0"


class Scripted:
    """A context that stands after the tokens of a list; what it signs begins with `signed `."""

    principal = "alice@REALM"

    def __init__(self, host: str, *responses: bytes) -> None:
        self._responses = [f"ticket for {host}".encode(), *responses]
        self.taken: list[bytes | None] = []

    @property
    def stands(self) -> bool:
        return not self._responses

    def initiate(self, token: bytes | None) -> bytes:
        self.taken.append(token)
        return self._responses.pop(0)

    def wrap(self, message: bytes) -> bytes:
        return b"signed " + message

    def unwrap(self, token: bytes) -> bytes:
        if not token.startswith(b"signed "):
            raise AuthenticationError("A token had an invalid Message Integrity Check (MIC)")
        return token.removeprefix(b"signed ")


def begun(*responses: bytes) -> Any:
    """A native exchange over a scripted context, behind its first token."""
    credentials = SaslCredentials.gssapi(build_begin(lambda host: Scripted(host, *responses)))
    assert credentials.mechanism == "GSSAPI"
    exchange, first = credentials.begin("broker")
    assert first == b"ticket for broker"
    return exchange


def test_an_exchange_shows_the_ticket_and_chooses_no_layer() -> None:
    exchange = begun(b"")
    assert exchange.step(b"the broker's own proof") == b"", "the offer comes after an empty token"
    assert exchange.step(OFFER) == b"signed \1\0\0\0alice@REALM"
    assert exchange.step(b"") is None


def test_a_broker_that_offers_at_once_is_answered() -> None:
    assert begun().step(b"signed \7\0\1\0") == b"signed \1\0\0\0alice@REALM"


@pytest.mark.parametrize(
    ("offer", "why"),
    [
        (b"signed \6\0\0\0", "requires a GSSAPI security layer"),
        (b"signed \1", "requires a GSSAPI security layer"),
        (b"\1\0\0\0", "Message Integrity Check"),
    ],
)
def test_what_the_broker_may_not_say_ends_the_exchange(offer: bytes, why: str) -> None:
    with pytest.raises(AuthenticationError, match=why):
        begun().step(offer)


def test_a_broker_that_goes_on_is_refused() -> None:
    exchange = begun()
    exchange.step(OFFER)
    with pytest.raises(AuthenticationError, match="another token after the GSSAPI exchange had ended"):
        exchange.step(b"more")


def test_who_has_no_ticket_learns_why() -> None:
    def lacking(_host: str) -> Any:
        raise AuthenticationError("No Kerberos credentials available")

    with pytest.raises(AuthenticationError, match="No Kerberos credentials available"):
        SaslCredentials.gssapi(build_begin(lacking)).begin("broker")


def test_tickets_are_in_memory_for_a_key_table_and_where_the_library_looks_otherwise() -> None:
    first, second = (build_store({"useKeyTab": "true", "keyTab": "/k"}) for _ in range(2))
    assert first
    assert second
    assert first["client_keytab"] == "/k"
    assert first["ccache"].startswith("MEMORY:")
    assert first["ccache"] != second["ccache"]
    assert build_store({"useTicketCache": "true", "ticketCache": "tickets"}) == {"ccache": "tickets"}
    assert build_store({"useTicketCache": "true"}) is build_store({}) is None


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({}, r"GSSAPI \(the default\) needs sasl.kerberos.service.name"),
        ({"sasl.mechanism": "GSSAPI"}, "GSSAPI needs sasl.kerberos.service.name"),
        (
            {"sasl.kerberos.service.name": "kafka", "sasl.jaas.config": f"{MODULE} required serviceName=other;"},
            "the login module's serviceName is other",
        ),
        (
            {"sasl.kerberos.service.name": "kafka", "sasl.jaas.config": f"{MODULE} required principal=alice;"},
            "needs useKeyTab=true or useTicketCache=true",
        ),
        ({"sasl.jaas.config": "a.B required;"}, "needs the login module com.sun.security.auth.module.Krb5LoginModule"),
    ],
)
def test_what_cannot_sign_in_is_refused(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], words: str
) -> None:
    monkeypatch.setattr(kerberos, "find_spec", lambda name: name)
    with pytest.raises(SettingError, match=words):
        open_security(AdminSettings.of_client("h:1", {"security.protocol": "SASL_PLAINTEXT", **properties}))


def test_a_client_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kerberos, "find_spec", lambda _name: None)
    with pytest.raises(SettingError, match=r"GSSAPI \(the default\): .*pip install 'gssapi>=1\.8'"):
        open_security(AdminSettings.of_client("h:1", {"security.protocol": "SASL_PLAINTEXT"}))
