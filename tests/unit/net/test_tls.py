"""TLS of open listeners: who a certificate's owner is, and what is said of certificates that end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pybroker.config.errors import ConfigError
from pybroker.config.security.tls import build_tls
from pybroker.net.native import DataPlane, PeerCertificate
from pybroker.net.tls import TlsListeners
from pybroker.security.distinguished_name import valid_until
from pybroker.security.principal_builder import BuilderError, Proof
from pybroker.security.principals import Principal
from tests.support.certificates import Authority, listener_settings

AUTHORITY = Authority()
ALICE = AUTHORITY.sign("alice")


class Plane:
    """Notes what is said of connections."""

    def __init__(self) -> None:
        self.reported: list[tuple[int, Principal | None]] = []

    def name_peer(self, connection: int, principal: Principal) -> None:
        self.reported.append((connection, principal))

    def close_connection(self, connection: int) -> None:
        self.reported.append((connection, None))


def listeners(
    builder: Callable[[Proof], Principal] | None = None, *, rules: str = "DEFAULT"
) -> tuple[TlsListeners, Plane]:
    texts = {**listener_settings(AUTHORITY.sign("broker")), "ssl.principal.mapping.rules": rules}
    made = TlsListeners(build_tls(["IN"], texts), builder)
    made._data_plane = cast("DataPlane", plane := Plane())
    return made, plane


def shown(peer: str = "192.0.2.1:5000") -> PeerCertificate:
    return cast("PeerCertificate", SimpleNamespace(connection=7, listener="IN", peer=peer, certificate=ALICE.der))


def test_a_rule_names_the_owner_of_a_certificate() -> None:
    made, plane = listeners(rules="RULE:^CN=(.*?)$/$1/U")
    made.name_peer(shown())
    assert plane.reported == [(7, Principal("User", "ALICE"))]


def test_a_certificate_without_a_rule_ends_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    made, plane = listeners(rules="RULE:^CN=bob$/bob/")
    made.name_peer(shown())
    assert plane.reported == [(7, None)]
    assert "connection from 192.0.2.1:5000 closed: " in caplog.text


@pytest.mark.parametrize(("peer", "host"), [("192.0.2.1:5000", "192.0.2.1"), ("[2001:db8::1]:5000", "2001:db8::1")])
def test_a_builder_of_ones_own_names_it_instead_of_the_rules(peer: str, host: str) -> None:
    requested: list[Proof] = []

    def build(proof: Proof) -> Principal:
        requested.append(proof)
        return Principal("Group", "readers")

    made, plane = listeners(build, rules="RULE:^CN=bob$/bob/")
    made.name_peer(shown(peer))
    assert plane.reported == [(7, Principal("Group", "readers"))]
    assert requested == [Proof("IN", host, "", "CN=alice", ALICE.der)]


def test_a_builder_that_fails_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def build(_: Proof) -> Any:
        raise BuilderError("the principal builder x:Y failed: KeyError")

    made, plane = listeners(build)
    made.name_peer(shown())
    assert plane.reported == [(7, None)]
    assert "closed: the principal builder x:Y failed" in caplog.text


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(days=29, hours=1), "expires in 29 days"),
        (timedelta(hours=-1), "has expired"),
        (timedelta(days=32), None),
    ],
)
def test_a_certificate_that_is_about_to_end_is_said_once_a_day(
    left: timedelta, words: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pybroker.net")
    made, _ = listeners()
    (_, certificate) = made._made["IN"]
    ends = valid_until(certificate)

    def lines(at: datetime) -> list[str]:
        caplog.clear()
        made.reload_changed_files(at)
        return caplog.messages

    reported = [] if words is None else [f"the certificate of listener IN {words} ({ends.isoformat()})"]
    assert lines(ends - left) == reported
    assert lines(ends - left + timedelta(hours=23)) == []
    assert len(lines(ends - left + timedelta(hours=25))) == len(reported)


def test_a_listener_that_is_opened_later_has_its_own_certificate_and_is_forgotten_when_closed() -> None:
    made, plane = listeners()
    (later,) = build_tls(["IN"], listener_settings(AUTHORITY.sign("later"))).values()
    event = cast(
        "PeerCertificate", SimpleNamespace(connection=8, listener="OUT", peer="192.0.2.1:1", certificate=ALICE.der)
    )
    made._watch = cast("asyncio.Task[None]", object())
    assert made.of("OUT") is None
    made.open("OUT", later)
    made.name_peer(event)
    assert (made.of("OUT") is not None, sorted(made.expiries())) == (True, ["IN", "OUT"])
    made.close("OUT")
    made.name_peer(event)
    assert (made.of("OUT"), sorted(made.expiries())) == (None, ["IN"])
    assert plane.reported == [(8, Principal("User", "CN=alice"))]


@pytest.mark.parametrize("store", ["ssl.keystore", "ssl.truststore"])
def test_a_location_that_can_be_no_path_leaves_a_listener_as_it_was(
    store: str, caplog: pytest.LogCaptureFixture
) -> None:
    made, _ = listeners()
    before = made.of("IN")
    files = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/keys", "ssl.truststore.type": "PEM"}
    poisoned = build_tls(["IN"], {**files, f"{store}.location": "a\0b"})
    made.reconfigure(poisoned)
    assert made.of("IN") == before
    assert (
        f"listener IN: keeping the previous certificate: {store}.location='a\\x00b': expected the path" in caplog.text
    )
    made.reload_changed_files(datetime.now().astimezone())
    with pytest.raises(ConfigError, match="expected the path of a file, without NUL"):
        made.open("OUT", poisoned["IN"])
    with pytest.raises(ConfigError, match="expected the path of a file, without NUL"):
        TlsListeners(poisoned)
