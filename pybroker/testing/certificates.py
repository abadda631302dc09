"""A temporary certificate authority and the certificates that it signs, for tests of TLS.

Owns keys (EC P-256), validity and names. Needs the package `cryptography` of the extra `testing`.
"""

from __future__ import annotations

import datetime
import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_DAY = datetime.timedelta(days=1)


class Certificate:
    """A certificate and its key, as PEM texts."""

    def __init__(self, certificate: str, key: str, parts: tuple[EllipticCurvePrivateKey, x509.Certificate]) -> None:
        self.certificate, self.key = certificate, key
        self._parts = parts

    def pkcs12(self, password: str) -> bytes:
        """Return certificate and key as a PKCS #12 store."""
        key, certificate = self._parts
        sealed = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"client", key, certificate, None, sealed)

    def sealed_key(self, password: str) -> str:
        """Return the key as PEM, encrypted with a password."""
        sealed = BestAvailableEncryption(password.encode())
        return self._parts[0].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed).decode()


class Authority:
    """A certificate authority of a test; `pem` is the certificate for trust stores."""

    def __init__(self, name: str = "a test's authority") -> None:
        self._own = _sign(name, (), None, days=(-1, 30), is_authority=True)
        self.pem = self._own.certificate

    def issue(self, name: str, hosts: Sequence[str] = ("127.0.0.1", "localhost"), *, days: int = 30) -> Certificate:
        """Sign a certificate for a common name and hosts, valid for `days` (negative: already expired)."""
        return _sign(name, hosts, self._own, days=(min(-1, days - 1), days), is_authority=False)


def _sign(
    name: str, hosts: Sequence[str], by: Certificate | None, *, days: tuple[int, int], is_authority: bool
) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_key, issuer = (key, subject) if by is None else (by._parts[0], by._parts[1].subject)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * _DAY)
        .not_valid_after(now + days[1] * _DAY)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_name_of(host) for host in hosts]), critical=False)
    certificate = builder.sign(issuer_key, hashes.SHA256())
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return Certificate(certificate.public_bytes(Encoding.PEM).decode(), key_pem, (key, certificate))


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
