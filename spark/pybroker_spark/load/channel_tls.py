"""TLS for the channel between the driver and its tasks: a certificate for one run, and encrypted connections.

Owns the certificate, its trust, and the encrypted connection. Must not know the messages: `channel` authenticates
the ends and frames messages, as without TLS.

The driver generates the certificate and its key for each run. Tasks get the certificate with the secret that Spark
passes to them, and trust no other. Host names are not verified, since the driver need not know the names by which
tasks connect. The key stays in the driver.
"""

from __future__ import annotations

import datetime
import secrets
import socket
import ssl
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pybroker_spark.load.errors import LoadError

NAME: Final = "pybroker-load"
"""The name in the certificate, which tasks send as server name."""
_CLOCKS_APART: Final = datetime.timedelta(days=2)
_LIFE: Final = datetime.timedelta(days=30)
"""Validity of the certificate: tasks connect at the start of a run, and their clocks may differ from the driver's."""
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Identity:
    """The TLS identity of the driver of one run."""

    certificate: str
    """The certificate in PEM; tasks trust no other."""
    context: ssl.SSLContext = field(repr=False)
    """Contains the key."""


def make_identity() -> Identity:
    """Generate a certificate and its key. Raises LoadError where the required package is missing."""
    try:
        certificate, key, password = _sign()
    except ImportError:
        raise LoadError(
            "TLS of the channel needs the package cryptography, which is missing: pip install 'cryptography>=42'"
        ) from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # A task connects once. A ticket that it has not read would reset the connection and discard its last message.
    context.num_tickets = 0
    # Python's OpenSSL reads keys only from files. The file is encrypted with a password that exists nowhere else.
    with tempfile.TemporaryDirectory(prefix="pybroker-load-") as folder:
        file = Path(folder) / "identity.pem"
        file.write_text(key + certificate)
        context.load_cert_chain(file, password=password)
    return Identity(certificate, context)


def _sign() -> tuple[str, str, str]:
    """Return a self-signed certificate, its encrypted key and the key's password, as texts."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
    from cryptography.x509.oid import NameOID

    key, password = ec.generate_private_key(ec.SECP256R1()), secrets.token_hex(32)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_APART)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    return certificate.public_bytes(Encoding.PEM).decode(), sealed.decode(), password


def trusting(certificate: str) -> ssl.SSLContext:
    """Return a task's TLS context, which trusts this certificate (PEM) and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=certificate)
    return context


class TlsConnection:
    """A TLS socket, of which one thread may read while another one writes.

    An `ssl.SSLSocket` of Python 3.11 passes both calls to OpenSSL concurrently, which is not thread-safe. Here a
    lock is held while OpenSSL works on bytes in memory, and none while the socket waits. The end of the socket ends
    the connection, with or without a close_notify: messages are numbered and authenticated, so truncation is
    detected.
    """

    def __init__(self, connection: socket.socket, context: ssl.SSLContext, *, is_server: bool) -> None:
        self._connection = connection
        self._received, self._sealed = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if is_server else NAME
        self._tls = context.wrap_bio(self._received, self._sealed, server_side=is_server, server_hostname=name)
        self._lock = threading.Lock()
        # A time of the monotonic clock at which a read ends, however slowly the other end sends. None: no timeout.
        self._until: float | None = None

    def shake_hands(self, until: float | None) -> None:
        """Complete the handshake before a time of the monotonic clock. Raises OSError, of which ssl.SSLError is one."""
        self._until = until
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
            except ssl.SSLError:
                self._flush()  # The other end gets the alert.
                raise
            else:
                self._flush()
                return
            if not self._take():
                raise ConnectionError("the other end has closed the connection in the handshake")

    def settimeout(self, seconds: float | None) -> None:
        """Set the timeout of each read; None: no timeout."""
        self._until = None if seconds is None else time.monotonic() + seconds
        self._connection.settimeout(seconds)

    def recv(self, size: int) -> bytes:
        """Return received bytes, at most `size`; empty at the end of the connection. Raises OSError."""
        while True:
            with self._lock:
                try:
                    return self._tls.read(size)
                except ssl.SSLWantReadError:
                    pass
            if not self._take():
                return b""

    def sendall(self, data: bytes) -> None:
        """Send all bytes; one thread at a time. Raises OSError."""
        left = memoryview(data)
        while left:
            with self._lock:
                left = left[self._tls.write(left) :]
                sealed = self._sealed.read()
            self._connection.sendall(sealed)

    def shutdown(self, how: int) -> None:
        """Shut the socket down."""
        self._connection.shutdown(how)

    def close(self) -> None:
        """Close the socket."""
        self._connection.close()

    def _take(self) -> bool:
        """Pass received bytes to OpenSSL; false at the end."""
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the other end was too slow")
            self._connection.settimeout(left)
        part = self._connection.recv(_READ_BYTES)
        with self._lock:
            self._received.write(part)
        return bool(part)

    def _flush(self) -> None:
        sealed = self._sealed.read()
        if sealed:
            self._connection.sendall(sealed)
