"""Test certificates: an authority and the certificates that it signs, as PEM text and key store files."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)
LOCAL = ("localhost", "127.0.0.1")

_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate, its key, and the intermediate certificates of its chain."""

    certificate: x509.Certificate
    key: _Key
    chain: tuple[x509.Certificate, ...] = ()
    """The certificates of intermediate authorities."""

    @property
    def der(self) -> bytes:
        """Return the certificate without its chain, in DER."""
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def certificates(self) -> str:
        """Return the certificate and its chain, in PEM."""
        return pem(self.certificate, *self.chain)

    def key_text(self, password: str | None = None) -> str:
        """Return the key in PEM, PKCS #8."""
        sealed = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed).decode()

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """Write key and certificates into one file, for `ssl.keystore.location`."""
        path.write_text(self.key_text(password) + self.certificates)
        return path

    def write_pkcs12(self, path: Path, password: str, trusted: tuple[x509.Certificate, ...] = ()) -> Path:
        """Write a PKCS #12 store."""
        made = pkcs12.serialize_key_and_certificates(
            b"key", self.key, self.certificate, [*self.chain, *trusted], BestAvailableEncryption(password.encode())
        )
        path.write_bytes(made)
        return path


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "Test Authority", signed_by: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer, key = (subject, self.key) if signed_by is None else (signed_by.certificate.subject, signed_by.key)
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + 365 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
        )
        self.certificate: x509.Certificate = builder.sign(key, hashes.SHA256())
        self.chain: tuple[x509.Certificate, ...] = () if signed_by is None else (self.certificate, *signed_by.chain)

    @property
    def pem(self) -> str:
        """The certificate of the authority, in PEM."""
        return pem(self.certificate)

    def write(self, path: Path) -> Path:
        """Write the authority's certificate in PEM."""
        path.write_text(self.pem)
        return path

    def sign(
        self,
        name: str | x509.Name,
        *,
        hosts: tuple[str, ...] = LOCAL,
        since: timedelta = -DAY,
        until: timedelta = 90 * DAY,
        key: _Key | None = None,
    ) -> Identity:
        """Issue a certificate for servers and clients. `since` and `until` are relative to the current time."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        common = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) if isinstance(name, str) else name
        now = datetime.now(UTC)
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            x509.CertificateBuilder()
            .subject_name(common)
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + since)
            .not_valid_after(now + until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        )
        return Identity(builder.sign(self.key, hashes.SHA256()), key, self.chain)


def pem(*certificates: x509.Certificate) -> str:
    """Return the concatenated certificates in PEM."""
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)


def listener_settings(
    identity: Identity, trusted: Authority | None = None, client_auth: str = "none"
) -> Mapping[str, str]:
    """Return broker settings with the certificate `identity` for its listeners, as PEM text."""
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": identity.certificates,
        "ssl.keystore.key": identity.key_text(),
        "ssl.client.auth": client_auth,
    }
    if trusted is not None:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted.pem}
    return settings


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
