"""From `ssl.*` settings to a client's TLS object.

Owns the choice of stores, their format and passwords, and the error messages. The native side parses the bytes
(`native/tls/src/material.rs`). Messages never contain passwords or parts of keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.client import native
from pybroker.client.errors import SettingError

if TYPE_CHECKING:
    from pybroker.client.settings.security import SecuritySettings

_JKS = bytes.fromhex("feedfeed")
_PEM = b"-----BEGIN "


@dataclass(slots=True)
class KeyMaterial:
    """The native side's input: bytes of PEM, or of PKCS #12 with a password. None: not given."""

    verifies_name: bool
    protocols: list[str]
    cipher_suites: list[str] | None
    trusted_pem: bytes | None = None
    trusted_pkcs12: tuple[bytes, str] | None = field(default=None, repr=False)
    chain_pem: bytes | None = None
    key_pem: bytes | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    key_pkcs12: tuple[bytes, str] | None = field(default=None, repr=False)


def open_tls(settings: SecuritySettings) -> native.ClientTls:
    """Load the stores that the settings name. Raises SettingError."""
    suites = settings.ssl_cipher_suites
    material = KeyMaterial(
        verifies_name=settings.ssl_endpoint_identification_algorithm == "https",
        protocols=list(settings.ssl_enabled_protocols or ("TLSv1.2", "TLSv1.3")),
        cipher_suites=list(suites) if suites else None,
    )
    _read_trust(settings, material)
    _read_identity(settings, material)
    try:
        return native.ClientTls(material)
    except SettingError as error:
        raise SettingError(f"ssl.* settings: {error}") from None


def _read_trust(settings: SecuritySettings, material: KeyMaterial) -> None:
    texts = {
        "ssl.truststore.certificates": settings.ssl_truststore_certificates,
        "ssl.ca.pem": settings.ssl_ca_pem,
    }
    files = {"ssl.truststore.location": settings.ssl_truststore_location, "ssl.ca.location": settings.ssl_ca_location}
    given = _only_one({**texts, **files})
    if given is None:
        return
    key, value = given
    if key in texts:
        material.trusted_pem = _pem_text(value)
    elif key == "ssl.ca.location":
        material.trusted_pem = _read(key, value)
    else:
        store = _read(key, value)
        if _is_pem(key, store, "ssl.truststore.type", settings.ssl_truststore_type, settings):
            material.trusted_pem = store
        else:
            material.trusted_pkcs12 = (store, settings.ssl_truststore_password or "")


def _read_identity(settings: SecuritySettings, material: KeyMaterial) -> None:
    chain = _only_one(
        {
            "ssl.keystore.certificate.chain": settings.ssl_keystore_certificate_chain,
            "ssl.certificate.pem": settings.ssl_certificate_pem,
            "ssl.certificate.location": settings.ssl_certificate_location,
        }
    )
    key = _only_one(
        {
            "ssl.keystore.key": settings.ssl_keystore_key,
            "ssl.key.pem": settings.ssl_key_pem,
            "ssl.key.location": settings.ssl_key_location,
        }
    )
    material.key_password = settings.ssl_key_password
    location = settings.ssl_keystore_location
    if location is not None:
        if chain or key:
            raise SettingError(f"ssl.keystore.location={location}: {(chain or key or '?')[0]} is also set: use one")
        store = _read("ssl.keystore.location", location)
        if _is_pem("ssl.keystore.location", store, "ssl.keystore.type", settings.ssl_keystore_type, settings):
            material.chain_pem = material.key_pem = store
        else:
            material.key_pkcs12 = (store, settings.ssl_keystore_password or "")
    elif chain and key:
        material.chain_pem, material.key_pem = _bytes_of(*chain), _bytes_of(*key)
    elif chain or key:
        there, lacking = ("certificate", "key") if chain else ("key", "certificate")
        raise SettingError(f"{(chain or key or '?')[0]}: the client's {there} is set without its {lacking}")


def _only_one(values: dict[str, str | None]) -> tuple[str, str] | None:
    given = [(key, value) for key, value in values.items() if value]
    if len(given) > 1:
        raise SettingError(f"{given[0][0]} and {given[1][0]} have the same meaning: set only one of them")
    return given[0] if given else None


def _bytes_of(key: str, value: str) -> bytes:
    return _read(key, value) if key.endswith(".location") else _pem_text(value)


def _pem_text(text: str) -> bytes:
    # In a properties file the lines of a PEM text are separated by the two characters \n.
    return text.replace("\\n", "\n").encode()


def _read(key: str, location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise SettingError(f"{key}={location}: {error.strerror or error}") from None


def _is_pem(key: str, store: bytes, type_key: str, type_: str, settings: SecuritySettings) -> bool:
    """Return whether a store is PEM; else it is PKCS #12. Raises SettingError for a store that contradicts its type."""
    if store.startswith(_JKS):
        raise SettingError(
            f"{key}: the store has Java's format JKS, which is not supported; convert it: keytool -importkeystore "
            f"-srckeystore FILE -destkeystore FILE.p12 -deststoretype PKCS12, and set {type_key}=PKCS12"
        )
    is_pem = _PEM in store
    if type_key in settings.named and is_pem is not (type_ == "PEM"):
        raise SettingError(f"{type_key}={type_}: the store of {key} is {'PEM' if is_pem else 'not PEM'}")
    return is_pem
