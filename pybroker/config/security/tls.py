"""TLS of listeners: the ssl.* settings of each; its own (`listener.name.NAME.ssl.*`) override those of the broker.

Owns which texts apply to a listener, and the checks before a file is read. Must not read certificates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.config.errors import ConfigError
from pybroker.config.key import parse_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CLIENT_AUTH = ("required", "requested", "none")
_TYPES = ("JKS", "PEM", "PKCS12")
_VERSIONS = ("TLSv1.2", "TLSv1.3")


class Store(msgspec.Struct, frozen=True):
    """The source of certificates: a file with its password, or PEM texts."""

    setting: str
    """Prefix of its keys, for messages: `ssl.keystore`."""
    type: str
    location: str | None
    password: str | None
    certificates: str | None
    """`ssl.keystore.certificate.chain`, or `ssl.truststore.certificates`."""
    key: str | None = None
    key_password: str | None = None

    @property
    def is_given(self) -> bool:
        """Whether a source is configured."""
        return bool(self.location or self.certificates)


class ListenerTls(msgspec.Struct, frozen=True):
    """The TLS settings of one listener."""

    listener: str
    keys: Store
    trust: Store
    client_auth: str
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    principal_mapping_rules: str


def build_tls(listeners: Iterable[str], texts: Mapping[str, str]) -> dict[str, ListenerTls]:
    """Return the TLS settings of each of these listeners, by name, from texts by full key. Raises ConfigError."""
    return {name: _build(name, texts) for name in listeners}


def _build(listener: str, texts: Mapping[str, str]) -> ListenerTls:
    prefix = f"listener.name.{listener.lower()}."

    def text(key: str) -> str | None:
        return texts.get(prefix + key) or texts.get(key) or None

    def one_of(key: str, known: tuple[str, ...], default: str) -> str:
        value = text(key) or default
        if value not in known:
            raise ConfigError(prefix + key, value, "one of " + ", ".join(known))
        return value

    keys = Store(
        "ssl.keystore",
        one_of("ssl.keystore.type", _TYPES, "JKS"),
        text("ssl.keystore.location"),
        text("ssl.keystore.password"),
        text("ssl.keystore.certificate.chain"),
        text("ssl.keystore.key"),
        text("ssl.key.password"),
    )
    trust = Store(
        "ssl.truststore",
        one_of("ssl.truststore.type", _TYPES, "JKS"),
        text("ssl.truststore.location"),
        text("ssl.truststore.password"),
        text("ssl.truststore.certificates"),
    )
    protocols = parse_list(text("ssl.enabled.protocols") or ",".join(_VERSIONS))
    unknown = [name for name in protocols if name not in _VERSIONS]
    if unknown:
        raise ConfigError(prefix + "ssl.enabled.protocols", unknown[0], "some of " + ", ".join(_VERSIONS))
    client_auth = one_of("ssl.client.auth", _CLIENT_AUTH, "none")
    if not keys.is_given:
        expected = "a file, or ssl.keystore.certificate.chain and ssl.keystore.key with ssl.keystore.type=PEM"
        raise ConfigError(prefix + "ssl.keystore.location", "", f"{expected}: a TLS listener needs a certificate")
    if client_auth != "none" and not trust.is_given:
        expected = f"a file, or ssl.truststore.certificates, as ssl.client.auth is {client_auth}"
        raise ConfigError(prefix + "ssl.truststore.location", "", expected)
    return ListenerTls(
        listener,
        keys,
        trust,
        client_auth,
        protocols,
        parse_list(text("ssl.cipher.suites") or ""),
        text("ssl.principal.mapping.rules") or "DEFAULT",
    )
