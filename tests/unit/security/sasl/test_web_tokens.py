"""Tokens of OAUTHBEARER: which are taken, and how often the issuer is asked for its keys."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from pybroker.config.security.oauth import BearerSettings, KeySource
from pybroker.security.sasl import web_tokens
from pybroker.security.sasl.web_tokens import Keys, TokenError, Validator
from pybroker.testing.certificates import Authority

NOW_S = 1_800_000_000
RSA, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
CURVE = ec.generate_private_key(ec.SECP256R1())
CLAIMS = {"sub": "alice", "iss": "https://issuer", "aud": "kafka", "iat": NOW_S - 10, "exp": NOW_S + 100}


def jwk(key: Any, key_id: str, **more: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.ECAlgorithm if key is CURVE else jwt.algorithms.RSAAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": key_id, **more}


@pytest.fixture
def source(tmp_path: Path) -> KeySource:
    keys = [jwk(RSA, "r"), jwk(CURVE, "e", alg="ES256"), {"kty": "oct", "kid": "s", "k": "c2VjcmV0"}]
    keys.append(jwk(OTHER, "enc", use="enc"))
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": keys}))
    return KeySource(path.as_uri(), 3_600_000, 100, 10_000, None)


@pytest.fixture
def validator(source: KeySource) -> Validator:
    settings = BearerSettings(source, ("kafka", "other"), "https://issuer", skew_s=30)
    return Validator(settings, lambda: NOW_S * 1000)


def signed(claims: Mapping[str, Any], key: Any = RSA, algorithm: str = "RS256", key_id: str | None = "r") -> str:
    return jwt.encode(dict(claims), key, algorithm, {} if key_id is None else {"kid": key_id})


def unsigned(claims: Mapping[str, Any], header: Mapping[str, Any] | None = None, signature: str = "") -> str:
    parts = [json.dumps(part).encode() for part in ({"alg": "none"} if header is None else header, claims)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "." + signature


def without(*names: str, **changed: Any) -> dict[str, Any]:
    return {name: value for name, value in {**CLAIMS, **changed}.items() if name not in names}


def test_a_token_of_the_issuer_says_who_its_bearer_is(validator: Validator) -> None:
    assert validator.check(signed(CLAIMS)) == ("alice", (NOW_S + 100) * 1000)
    assert validator.check(signed(CLAIMS, CURVE, "ES256", "e")).user == "alice"
    assert validator.check(signed(CLAIMS, algorithm="PS512")).user == "alice"
    assert validator.check(signed(without(aud=["x", "other"], exp=NOW_S - 20))).user == "alice"


REFUSED = {
    "another audience": signed(without(aud="x")),
    "no audience": signed(without("aud")),
    "another issuer": signed(without(iss="https://other")),
    "no issuer": signed(without("iss")),
    "ended": signed(without(exp=NOW_S - 30)),
    "no end": signed(without("exp")),
    "an end that is none": signed(without(exp="never")),
    "made later": signed(without(iat=NOW_S + 31)),
    "no time": signed(without("iat")),
    "holds later": signed(without(nbf=NOW_S + 31)),
    "no user": signed(without("sub")),
    "a user that is none": signed(without(sub=" ")),
    "another's key": signed(CLAIMS, OTHER),
    "an unknown key": signed(CLAIMS, OTHER, key_id="o"),
    "a key that is not for signatures": signed(CLAIMS, OTHER, key_id="enc"),
    "no key id among several": signed(CLAIMS, key_id=None),
    "a shared secret": signed(CLAIMS, b"secret" * 8, "HS256", "s"),
    "the public key as a secret": signed(CLAIMS, b"x" * 32, "HS256", "r"),
    "an algorithm of another key": signed(CLAIMS, CURVE, "ES256", "r"),
    "another algorithm than the key's": signed(CLAIMS, RSA, "RS256", "e"),
    "none": unsigned(CLAIMS),
    "none with a key": unsigned(CLAIMS, {"alg": "none", "kid": "r"}),
    "None": unsigned(CLAIMS, {"alg": "None", "kid": "r"}),
    "no algorithm": unsigned(CLAIMS, {"kid": "r"}),
    "a key of its own": unsigned(CLAIMS, {"alg": "RS256", "jwk": jwk(OTHER, "r")}, "AAAA"),
    "a key id that is none": unsigned(CLAIMS, {"alg": "RS256", "kid": ["r"]}, "AAAA"),
    "changed claims": ".".join(
        [signed(CLAIMS).split(".")[0], unsigned(without(sub="root")).split(".")[1], signed(CLAIMS).split(".")[2]]
    ),
    "nothing": "",
    "rubbish": "a.b.c",
}


@pytest.mark.parametrize("token", REFUSED.values(), ids=REFUSED)
def test_other_tokens_are_refused(validator: Validator, token: str) -> None:
    with pytest.raises(TokenError):
        validator.check(token)


def test_where_nobody_signs_a_token_has_to_say_so() -> None:
    settings = BearerSettings(None, scopes=("a", "b"))
    validator = Validator(settings, lambda: NOW_S * 1000)
    good = {"sub": "alice", "exp": NOW_S + 1, "scope": "a b c"}
    assert validator.check(unsigned(good)) == ("alice", (NOW_S + 1) * 1000)
    assert validator.check(unsigned({**good, "scope": ["b", "a"]})).user == "alice"
    for token in (
        unsigned(good, {"alg": "RS256"}),
        unsigned(good, signature="AAAA"),
        signed(good),
        unsigned({**good, "exp": NOW_S}),
        unsigned({**good, "exp": True}),
        unsigned({**good, "iat": NOW_S + 1}),
        unsigned({"exp": NOW_S + 1}),
        "a.b",
        "bnVsbA.bnVsbA.",
    ):
        with pytest.raises(TokenError):
            validator.check(token)
    with pytest.raises(TokenError, match="lacks the scope b") as refused:
        validator.check(unsigned({**good, "scope": "a"}))
    assert (refused.value.status, refused.value.scope) == ("insufficient_scope", "a b")


class Issuer:
    """Keys that come when they are asked for, by a clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, source: KeySource) -> None:
        self.requested = 0
        self.now = 0.0
        self.keys: dict[str | None, dict[str, Any]] | None = {"r": {"kty": "RSA"}}
        monkeypatch.setattr(web_tokens, "read_keys", self._read)
        self.store = Keys(source, lambda: self.now)
        self.responses = threading.Event()
        self.responses.set()

    def _read(self, _source: KeySource) -> dict[str | None, dict[str, Any]]:
        self.requested += 1
        assert self.responses.wait(60)
        if self.keys is None:
            raise OSError("nobody there")
        return self.keys

    def has(self, key_id: str) -> bool:
        """Whether a key is found, among those that are there by then; what asks for keys meanwhile has ended."""
        if self.store._keys is not None:
            self.responses.clear()
        try:
            self.store.find(key_id)
        except TokenError:
            return False
        finally:
            self.responses.set()
            end = time.monotonic() + 60
            while self.store._fetch is not None:
                assert time.monotonic() < end
        return True


def test_unknown_keys_have_the_issuer_asked_once_in_a_minute(
    monkeypatch: pytest.MonkeyPatch, source: KeySource
) -> None:
    issuer = Issuer(monkeypatch, source)
    assert issuer.has("r")
    assert issuer.requested == 1
    for number in range(1000):
        assert not issuer.has(f"unknown-{number}")
    assert issuer.requested == 2
    issuer.now = 61
    issuer.keys = {"r": {"kty": "RSA"}, "new": {"kty": "EC"}}
    assert not issuer.has("new"), "it is refused until the keys are there"
    assert issuer.has("new")
    assert issuer.requested == 3


def test_old_keys_are_taken_until_there_are_newer_ones(monkeypatch: pytest.MonkeyPatch, source: KeySource) -> None:
    issuer = Issuer(monkeypatch, source)
    assert issuer.has("r")
    issuer.now, issuer.keys = 3600, None
    for _ in range(10):
        assert issuer.has("r")
    assert issuer.requested == 2, "a pause follows a failure"
    issuer.now, issuer.keys = 3601, {"s": {"kty": "EC"}}
    issuer.has("r")
    assert issuer.requested == 3
    assert not issuer.has("r")
    assert issuer.has("s")


def test_an_issuer_that_is_not_there_is_asked_again_after_a_pause(
    monkeypatch: pytest.MonkeyPatch, source: KeySource
) -> None:
    issuer = Issuer(monkeypatch, source)
    issuer.keys = None
    for number, pause in enumerate((0.1, 0.2, 0.4), start=1):
        assert not issuer.has("r")
        assert not issuer.has("r")
        assert issuer.requested == number
        issuer.now += pause
    issuer.keys = {"r": {"kty": "RSA"}}
    assert issuer.has("r")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"keys": 1}', "[" * 100_000, "x" * (2**20 + 1)])
def test_what_is_no_jwks_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(text)
    with pytest.raises((ValueError, RecursionError)):
        web_tokens.read_keys(KeySource(path.as_uri(), 1, 1, 1, None))


def test_keys_come_by_https_from_who_has_a_trusted_certificate(tmp_path: Path) -> None:
    authority = Authority()
    own = authority.issue("issuer")
    pem, trusted = tmp_path / "own.pem", tmp_path / "trusted.pem"
    pem.write_text(own.key + own.certificate)
    trusted.write_text(authority.pem)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"keys": [{"kty": "RSA", "kid": "r"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that the base has
            """Nothing: pytest fails on what is written."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"https://127.0.0.1:{server.server_port}/keys"
            source = KeySource(url, 1, 1, 1, str(trusted))
            assert web_tokens.read_keys(source) == {"r": {"kty": "RSA", "kid": "r"}}
            with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
                web_tokens.read_keys(source._replace(trusted=None))
        finally:
            server.shutdown()
            thread.join()
