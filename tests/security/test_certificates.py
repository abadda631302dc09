"""A certificate that the listener does not believe is answered nothing, and nobody becomes another by a name."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from tests.support.certificates import DAY, LOCAL, Authority, Identity
from tests.support.secured_server import At
from tests.support.wire import Wire

CLUSTER_REFUSED, NONE = 31, 0


def context(authority: Authority, shown: Path | None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=None, cadata=authority.pem)
    if shown is not None:
        made.load_cert_chain(shown)
    return made


def encrypted(address: str, using: ssl.SSLContext) -> ssl.SSLSocket:
    host, port = address.rsplit(":", 1)
    return using.wrap_socket(socket.create_connection((host, int(port)), timeout=60), server_hostname="localhost")


def respond(address: str, using: ssl.SSLContext) -> bytes:
    """What comes back to ApiVersions until the server closes, or 4 bytes of it."""
    with contextlib.suppress(ssl.SSLError, ConnectionError), encrypted(address, using) as connection:
        body = struct.pack(">hhih", 18, 0, 7, -1)
        connection.sendall(struct.pack(">i", len(body)) + body)
        return connection.recv(4)
    return b""


def signed_by_a_leaf(authority: Authority) -> Identity:
    """A certificate that another one has signed which is no authority's."""
    leaf = authority.sign("alice")
    forger = Authority("alice")
    forger.key = leaf.key
    forger.certificate = leaf.certificate
    forger.chain = (leaf.certificate,)
    return forger.sign("admin")


def of_the_same_name(_: Authority) -> Identity:
    """One whose authority has the name of the true one."""
    return Authority().sign("admin")


def with_another_key(authority: Authority) -> Identity:
    """One whose signature is that of another certificate."""
    true, other = authority.sign("admin"), authority.sign("alice")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "admin")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(authority.certificate.subject)
        .public_key(other.key.public_key())
        .serial_number(true.certificate.serial_number)
        .not_valid_before(true.certificate.not_valid_before_utc)
        .not_valid_after(true.certificate.not_valid_after_utc)
    )
    return Identity(builder.sign(other.key, hashes.SHA256()), other.key)


REFUSED: dict[str, Callable[[Authority], Identity | None]] = {
    "none": lambda _: None,
    "expired": lambda authority: authority.sign("alice", since=-3 * DAY, until=-timedelta(seconds=5)),
    "not yet valid": lambda authority: authority.sign("alice", since=DAY),
    "another authority": lambda _: Authority("Another").sign("alice"),
    "another authority of the same name": of_the_same_name,
    "signed by a certificate that is no authority's": signed_by_a_leaf,
    "signed with another key": with_another_key,
    "an authority's authority alone": lambda _: Authority("Below", signed_by=Authority("Above")).sign("alice"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_certificate_that_is_not_believed_is_answered_nothing(
    at: At, authority: Authority, tmp_path: Path, kind: str
) -> None:
    shown = REFUSED[kind](authority)
    path = None if shown is None else shown.write_pem(tmp_path / "shown.pem")
    assert respond(at("SSL"), context(authority, path)) == b""


def test_certificates_of_the_authority_and_of_one_below_it_are_believed(
    at: At, authority: Authority, tmp_path: Path
) -> None:
    for number, one in enumerate((authority.sign("alice"), Authority("Below", signed_by=authority).sign("bob"))):
        path = one.write_pem(tmp_path / f"{number}.pem")
        assert len(respond(at("SSL"), context(authority, path))) == 4


def test_a_server_for_another_host_is_not_spoken_to(at: At, authority: Authority, tmp_path: Path) -> None:
    """The names in the certificate are those of LOCAL: a client that checks them does not believe another host."""
    path = authority.sign("alice").write_pem(tmp_path / "alice.pem")
    host, port = at("SSL").rsplit(":", 1)
    assert "broker.example" not in LOCAL
    with (
        socket.create_connection((host, int(port)), timeout=60) as plain,
        pytest.raises(ssl.SSLCertVerificationError, match=r"broker\.example"),
    ):
        context(authority, path).wrap_socket(plain, server_hostname="broker.example")


def name(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    """A name whose attributes are written in this order, the outermost first."""
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes])


def at_once(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    """A name of one relative name with several attributes."""
    return x509.Name([x509.RelativeDistinguishedName([x509.NameAttribute(kind, text) for kind, text in attributes])])


CN, ORG, OU = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME
NAMES = {
    "the administrator": (name((ORG, "Real"), (CN, "admin")), NONE),
    "a comma in a name": (name((CN, "admin,O=Real")), CLUSTER_REFUSED),
    "an escaped comma in a name": (name((CN, "admin\\,O=Real")), CLUSTER_REFUSED),
    "both attributes in one": (at_once((CN, "admin"), (ORG, "Real")), CLUSTER_REFUSED),
    "another order": (name((CN, "admin"), (ORG, "Real")), CLUSTER_REFUSED),
    "one attribute more": (name((ORG, "Real"), (CN, "admin"), (OU, "x")), CLUSTER_REFUSED),
    "a space": (name((ORG, "Real"), (CN, " admin")), CLUSTER_REFUSED),
    "upper case": (name((ORG, "Real"), (CN, "Admin")), CLUSTER_REFUSED),
    "a zero byte": (name((ORG, "Real"), (CN, "admin\0")), CLUSTER_REFUSED),
    "another letter that looks like it": (name((ORG, "Real"), (CN, "\u0430dmin")), CLUSTER_REFUSED),
    "a type in the prefix": (name((CN, "User:CN=admin,O=Real")), CLUSTER_REFUSED),
    "the name of who is nobody": (name((CN, "ANONYMOUS")), CLUSTER_REFUSED),
}


SERVICE = (NameOID.ORGANIZATIONAL_UNIT_NAME, "Services")
RULED = {
    "whom the rule is for": (name((ORG, "Real"), SERVICE, (CN, "ruled")), NONE),
    "the same, as the rule makes small letters": (name((ORG, "Real"), SERVICE, (CN, "Ruled")), NONE),
    "another unit": (name((ORG, "Real"), (OU, "Service"), (CN, "ruled")), CLUSTER_REFUSED),
    "the unit within the name": (name((ORG, "Real"), (CN, "ruled,OU=Services")), CLUSTER_REFUSED),
    "unit and organization within the name": (name((CN, "ruled,OU=Services,O=Real")), CLUSTER_REFUSED),
    "the whole in another attribute": (name((ORG, "CN=ruled,OU=Services,O=Real")), CLUSTER_REFUSED),
    "an organization around it": (name((ORG, "Fake"), (ORG, "Real"), SERVICE, (CN, "ruled")), CLUSTER_REFUSED),
    "something before the name": (name((ORG, "Real"), SERVICE, (CN, "ruled"), (OU, "x")), CLUSTER_REFUSED),
    "a second name before the unit": (name((ORG, "Real"), SERVICE, (OU, "x"), (CN, "ruled")), CLUSTER_REFUSED),
    "name and unit in one": (
        x509.Name(
            [
                x509.RelativeDistinguishedName([x509.NameAttribute(ORG, "Real")]),
                *at_once((CN, "ruled"), SERVICE).rdns,
            ]
        ),
        CLUSTER_REFUSED,
    ),
    "a line that ends early": (name((ORG, "Real\n"), SERVICE, (CN, "ruled")), CLUSTER_REFUSED),
    "a line before it": (name((ORG, "Real"), SERVICE, (CN, "x\nruled")), CLUSTER_REFUSED),
    "the mapped name without the rest": (name((CN, "ruled")), CLUSTER_REFUSED),
    "a replacement within the name": (name((ORG, "Real"), SERVICE, (CN, "$1")), CLUSTER_REFUSED),
}
"""Names that `RULE:^CN=(.*?),OU=Services,O=Real$/$1/L` sees: those that it makes `ruled` of, and no others, get in."""


class EncryptedWire(Wire):
    """A connection of raw frames over TLS."""

    def __init__(self, address: str, using: ssl.SSLContext) -> None:
        super().__init__(address)
        self.socket = using.wrap_socket(self.socket, server_hostname="localhost")


@pytest.mark.parametrize("who", [*NAMES, *RULED])
def test_nobody_is_the_administrator_by_a_name_that_is_like_his(
    at: At, authority: Authority, tmp_path: Path, who: str
) -> None:
    subject, code = {**NAMES, **RULED}[who]
    path = authority.sign(subject).write_pem(tmp_path / "shown.pem")
    with EncryptedWire(at("SSL"), context(authority, path)) as wire:
        described = wire.call(
            "DescribeAcls",
            3,
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
    assert described.error_code == code
