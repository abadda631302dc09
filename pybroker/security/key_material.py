"""Certificates and keys of listeners: from settings and their files to the data plane's TLS object.

Owns the reading of stores, and the error messages. Must not know sockets.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pybroker.config.errors import ConfigError
from pybroker.security.native import ServerTls, pem_certificates, pem_key, read_pkcs12

_T = TypeVar("_T")

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.config.security.tls import ListenerTls, Store

_JKS = b"\xfe\xed\xfe\xed"
_PEM = b"-----BEGIN "


class Material(msgspec.Struct, frozen=True):
    """The content of a store, each certificate in DER; `key` is None where it has none."""

    chain: tuple[bytes, ...]
    key: bytes | None
    certificates: tuple[bytes, ...]
    """The trusted certificates."""


def read_keys(store: Store) -> Material:
    """Return a listener's own chain and key; raises ConfigError."""
    if store.location is None or store.type == "PEM":
        texts = (store.certificates, store.key) if store.location is None else (_read(store).decode("latin-1"),) * 2
        chain, key = texts[0], texts[1]
        if not chain or not key:
            raise ConfigError(f"{store.setting}.key", "[hidden]", "a private key for the certificate chain")
        made = _checked(store, lambda: (pem_certificates(chain.encode()), pem_key(key.encode(), store.key_password)))
        return Material(tuple(made[0]), made[1], ())
    content = _pkcs12(store)
    password = store.password or store.key_password or ""
    chain_of, key_of, certificates = _checked(store, lambda: read_pkcs12(content, password))
    if key_of is None:
        raise ConfigError(f"{store.setting}.location", store.location, "a store with a private key")
    return Material(tuple(chain_of), key_of, tuple(certificates))


def read_trusted(store: Store) -> tuple[bytes, ...]:
    """Return the certificates of a trust store, none where it is not given; raises ConfigError."""
    if not store.is_given:
        return ()
    if store.location is None or store.type == "PEM":
        text = (store.certificates or "").encode() if store.location is None else _read(store)
        return tuple(_checked(store, lambda: pem_certificates(text)))
    content = _pkcs12(store)
    return tuple(_checked(store, lambda: read_pkcs12(content, store.password or ""))[2])


def build_server_tls(settings: ListenerTls) -> tuple[ServerTls, bytes]:
    """Return the TLS object of a listener, and its certificate (DER). Raises ConfigError."""
    material = read_keys(settings.keys)
    trusted = read_trusted(settings.trust)
    tls = _checked(
        settings.keys,
        lambda: ServerTls(
            chain=list(material.chain),
            key=material.key or b"",
            trusted=list(trusted),
            client_auth=settings.client_auth,
            protocols=list(settings.protocols),
            cipher_suites=list(settings.cipher_suites) or None,
        ),
    )
    return tls, material.chain[0]


def _read(store: Store) -> bytes:
    try:
        return Path(store.location or "").read_bytes()
    except OSError as error:
        raise ConfigError(f"{store.setting}.location", store.location or "", f"a file: {error.strerror}") from None


def _pkcs12(store: Store) -> bytes:
    content, key = _read(store), f"{store.setting}.location"
    if content.startswith(_JKS):
        convert = f"keytool -importkeystore -srckeystore {store.location} -destkeystore new.p12 -deststoretype PKCS12"
        raise ConfigError(key, store.location or "", f"a PKCS12 or PEM file, as JKS is not supported; {convert}")
    if content.startswith(_PEM):
        raise ConfigError(key, store.location or "", f"{store.setting}.type=PEM, as the file is PEM")
    return content


def _checked(store: Store, make: Callable[[], _T]) -> _T:
    try:
        return make()
    except ValueError as error:
        place = store.location or f"{store.setting}.*"
        raise ConfigError(f"{store.setting}.location", place, f"usable certificates and keys: {error}") from None
