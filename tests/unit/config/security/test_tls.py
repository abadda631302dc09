"""The TLS of listeners: which texts are in force, and what is refused before a file is read."""

from __future__ import annotations

import pytest

from pybroker.config.errors import ConfigError
from pybroker.config.security.tls import ListenerTls, build_tls

KEYS = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "own.pem"}
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "trusted.pem"}


def built(**texts: str) -> ListenerTls:
    (one,) = build_tls(["IN"], {**KEYS, **texts}).values()
    return one


def test_without_more_kafkas_defaults_hold() -> None:
    one = built()
    assert (one.listener, one.protocols, one.cipher_suites) == ("IN", ("TLSv1.2", "TLSv1.3"), ())
    assert (one.client_auth, one.principal_mapping_rules) == ("none", "DEFAULT")
    assert (one.keys.location, one.keys.password, one.keys.certificates) == ("own.pem", None, None)
    assert not one.trust.is_given


def test_a_listeners_own_texts_stand_over_those_of_all() -> None:
    texts = {
        **KEYS,
        **TRUST,
        "listener.name.in.ssl.keystore.location": "in.pem",
        "listener.name.in.ssl.enabled.protocols": "TLSv1.3",
        "ssl.enabled.protocols": "TLSv1.2",
        "listener.name.in.ssl.client.auth": "required",
        "listener.name.in.ssl.cipher.suites": "TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256",
        "listener.name.out.ssl.keystore.password": "of-out",
    }
    made = build_tls(["IN", "OUT"], texts)
    inner, outer = made["IN"], made["OUT"]
    assert (inner.keys.location, outer.keys.location) == ("in.pem", "own.pem")
    assert (inner.protocols, outer.protocols) == (("TLSv1.3",), ("TLSv1.2",))
    assert (inner.client_auth, outer.client_auth) == ("required", "none")
    assert inner.cipher_suites == ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256")
    assert (inner.keys.password, outer.keys.password) == (None, "of-out")


def test_an_empty_text_of_a_listener_leaves_that_of_all() -> None:
    assert built(**{"listener.name.in.ssl.keystore.location": ""}).keys.location == "own.pem"


@pytest.mark.parametrize("text", ["TLSv1", "TLSv1.1", "SSLv3", "tlsv1.3", "TLSv1.3,TLSv1.1"])
def test_a_version_that_is_not_spoken_is_refused(text: str) -> None:
    unknown = text.rpartition(",")[2]
    with pytest.raises(ConfigError, match=rf"ssl\.enabled\.protocols={unknown}: expected some of TLSv1\.2, TLSv1\.3"):
        built(**{"ssl.enabled.protocols": text})


@pytest.mark.parametrize(
    ("key", "text", "right"),
    [
        ("ssl.client.auth", "maybe", "one of required, requested, none"),
        ("ssl.keystore.type", "BCFKS", "one of JKS, PEM, PKCS12"),
        ("ssl.truststore.type", "pem", "one of JKS, PEM, PKCS12"),
    ],
)
def test_other_words_are_refused_with_those_that_there_are(key: str, text: str, right: str) -> None:
    with pytest.raises(ConfigError, match=rf"listener\.name\.in\.{key}={text}: expected {right}"):
        built(**{key: text})


def test_a_listener_without_a_certificate_is_refused() -> None:
    with pytest.raises(ConfigError, match="a TLS listener needs a certificate"):
        build_tls(["IN"], {"ssl.keystore.type": "PEM"})


@pytest.mark.parametrize("word", ["requested", "required"])
def test_asking_for_certificates_wants_somebody_to_trust(word: str) -> None:
    with pytest.raises(ConfigError, match=rf"as ssl\.client\.auth is {word}"):
        built(**{"ssl.client.auth": word})
    assert built(**{"ssl.client.auth": word, **TRUST}).client_auth == word
