"""Stores of certificates: which are read, and what is said of one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.config.errors import ConfigError
from pybroker.config.security.tls import ListenerTls, Store, build_tls
from pybroker.security.key_material import build_server_tls, read_keys, read_trusted
from tests.support.certificates import Authority, Identity, listener_settings

AUTHORITY, OTHER = Authority(), Authority("Another Authority")
SERVER = AUTHORITY.sign("broker")
PASSWORD = "of-the-store"


def store(setting: str, location: Path, kind: str = "PKCS12", password: str | None = PASSWORD) -> Store:
    return Store(setting, kind, str(location), password, None)


def tls(**more: str) -> ListenerTls:
    (one,) = build_tls(["IN"], {**listener_settings(SERVER), **more}).values()
    return one


def trust_store(path: Path) -> Path:
    """A PKCS #12 store that holds two authorities and no key."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    trusted = [pkcs12.PKCS12Certificate(one.certificate, name) for one, name in ((AUTHORITY, b"a"), (OTHER, b"b"))]
    path.write_bytes(pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(PASSWORD.encode())))
    return path


@pytest.mark.parametrize("setting", ["ssl.keystore", "ssl.truststore"])
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_javas_own_format_is_refused_with_the_way_to_convert_it(tmp_path: Path, setting: str, kind: str) -> None:
    (tmp_path / "own.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\x02 and more")
    read = read_keys if setting == "ssl.keystore" else read_trusted
    with pytest.raises(ConfigError) as raised:
        read(store(setting, tmp_path / "own.jks", kind))
    words = str(raised.value)
    assert words.startswith(f"{setting}.location={tmp_path / 'own.jks'}: ")
    assert (
        f"keytool -importkeystore -srckeystore {tmp_path / 'own.jks'} -destkeystore new.p12 -deststoretype PKCS12"
        in words
    )
    assert PASSWORD not in words


def test_a_pem_file_under_another_type_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.type=PEM, as the file is PEM"):
        read_keys(store("ssl.keystore", SERVER.write_pem(tmp_path / "own.pem")))


def test_a_pkcs12_trust_store_holds_all_whom_it_trusts(tmp_path: Path) -> None:
    found = read_trusted(store("ssl.truststore", trust_store(tmp_path / "trust.p12")))
    assert set(found) == {Identity(one.certificate, one.key).der for one in (AUTHORITY, OTHER)}


def test_a_listener_asks_for_certificates_by_a_pkcs12_trust_store(tmp_path: Path) -> None:
    location = str(trust_store(tmp_path / "trust.p12"))
    trusted = {"ssl.truststore.type": "PKCS12", "ssl.truststore.location": location}
    made, certificate = build_server_tls(
        tls(**trusted, **{"ssl.truststore.password": PASSWORD, "ssl.client.auth": "required"})
    )
    assert made is not None
    assert certificate == SERVER.der


@pytest.mark.parametrize("password", [None, "another"])
def test_a_store_that_its_password_does_not_open_is_said_without_it(tmp_path: Path, password: str | None) -> None:
    path = SERVER.write_pkcs12(tmp_path / "own.p12", PASSWORD)
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location") as raised:
        read_keys(store("ssl.keystore", path, password=password))
    assert "another" not in str(raised.value)


def test_a_store_without_a_key_shows_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a store with a private key"):
        read_keys(store("ssl.keystore", trust_store(tmp_path / "trust.p12")))


def test_a_suite_that_is_not_spoken_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError, match="TLS_RSA_WITH_RC4_128_MD5"):
        build_server_tls(tls(**{"ssl.cipher.suites": "TLS_RSA_WITH_RC4_128_MD5"}))


def test_suites_of_another_version_leave_nothing_to_speak() -> None:
    with pytest.raises(ConfigError):
        build_server_tls(tls(**{"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384", "ssl.enabled.protocols": "TLSv1.2"}))
