"""Logins by OAUTHBEARER: real clients, and single messages with Kafka's codes and words."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import jwt
import kafka
import kafka.net.sasl.oauth
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from pybench.peers.java import run_java_tool
from pybroker.client.administration.admin import Admin
from pybroker.client.security.bearer import BearerToken
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.config.security.oauth import UNSECURED_CLASS
from tests.conformance.conftest import AGAINST_KAFKA
from tests.conformance.sasl_clients import NONE, SASL_AUTHENTICATION_FAILED, handshake, sasl_server, settings, token
from tests.support import programs
from tests.support.wire import Wire

pytestmark = pytest.mark.timeout(300)

_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KEY = generate_private_key(SECP256R1())
UNSECURED = {
    "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    "listener.name.sasl.oauthbearer.sasl.jaas.config": f'{_LOGIN} required unsecuredLoginStringClaim_sub="broker";',
    "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class": UNSECURED_CLASS,
}


@pytest.fixture(scope="module")
def unsecured() -> Iterator[str]:
    """The address of a server that takes tokens which nobody has signed."""
    with sasl_server(AGAINST_KAFKA, UNSECURED) as (address, _):
        yield address


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one of ours that takes the tokens of an issuer."""
    path = tmp_path_factory.mktemp("issuer") / "jwks.json"
    key = {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key())), "kid": "k", "use": "sig"}
    path.write_text(json.dumps({"keys": [key]}))
    given = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl.sasl.oauthbearer.jwks.endpoint.url": path.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
    }
    with sasl_server(False, given) as (address, _):
        yield address


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"sub": "alice", "aud": "kafka", "iat": now, "exp": now + 600, **more}


def unsigned(**more: Any) -> str:
    parts = ({"alg": "none"}, claims(**more))
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def signed(**more: Any) -> str:
    return jwt.encode(claims(**more), KEY, "ES256", {"kid": "k"})


def message(bearer: str, gs2: str = "n,,") -> bytes:
    return f"{gs2}\x01auth=Bearer {bearer}\x01\x01".encode()


def test_a_token_is_a_proof_until_it_ends(unsecured: str) -> None:
    with Wire(unsecured) as wire:
        handshake(wire, "OAUTHBEARER")
        response = token(wire, message(unsigned()))
        assert (response.error_code, response.auth_bytes) == (NONE, b"")
        assert 590_000 < response.session_lifetime_ms <= 600_000
        assert wire.call("Metadata", 9, topics=[]).brokers


@pytest.mark.parametrize("bearer", [unsigned(exp=1), signed(), "a.b.c"], ids=["ended", "signed", "rubbish"])
def test_a_bad_token_is_answered_by_a_status_and_then_refused(unsecured: str, bearer: str) -> None:
    status = '{"status":"invalid_token"}'
    with Wire(unsecured) as wire:
        handshake(wire, "OAUTHBEARER")
        response = token(wire, message(bearer))
        assert (response.error_code, response.auth_bytes) == (NONE, status.encode())
        response = token(wire, b"\x01")
        assert (response.error_code, response.error_message) == (SASL_AUTHENTICATION_FAILED, status)
        assert wire.is_closed_by_peer()


@pytest.mark.parametrize(
    "first",
    [None, b"n,,\x01auth=Basic abc\x01\x01", b"n,,\x01\x01", b"", b"\x01"],
    ids=["another user", "another scheme", "no token", "nothing", "an acknowledgement of nothing"],
)
def test_a_bad_message_is_refused_at_once(unsecured: str, first: bytes | None) -> None:
    if first is None:
        # A token is made when it is sent: it ends ten minutes later.
        first = message(unsigned(), "n,a=bob,")
    if AGAINST_KAFKA and b"Basic" in first:
        pytest.skip("Kafka closes the connection without an answer: its words have no place for the scheme")
    with Wire(unsecured) as wire:
        handshake(wire, "OAUTHBEARER")
        assert token(wire, first).error_code == SASL_AUTHENTICATION_FAILED
        assert wire.is_closed_by_peer()


def test_an_issuers_tokens_are_taken_and_no_others(secured: str) -> None:
    for bearer, good in (
        (signed(), True),
        (signed(aud="x"), False),
        (signed(exp=int(time.time()) - 60), False),
        (unsigned(), False),
        (jwt.encode(claims(), generate_private_key(SECP256R1()), "ES256", {"kid": "k"}), False),
        (jwt.encode(claims(), KEY, "ES256", {"kid": "unknown"}), False),
    ):
        with Wire(secured) as wire:
            handshake(wire, "OAUTHBEARER")
            response = token(wire, message(bearer))
            assert (response.auth_bytes == b"", bool(response.session_lifetime_ms)) == (good, good)


class Provider(kafka.net.sasl.oauth.AbstractTokenProvider):
    """kafka-python's way to a token."""

    def __init__(self, bearer: str) -> None:
        self._bearer = bearer

    def token(self) -> str:
        return self._bearer


def topics_of(client: str, address: str, bearer: str) -> bool:
    """Whether a client learns which topics there are; raises what it raises."""
    if client == "confluent-kafka":
        admin = confluent_kafka.admin.AdminClient(
            {
                "bootstrap.servers": address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": lambda _config: (bearer, time.time() + 600, "alice", {}),
            }
        )
        admin.poll(0)
        return bool(admin.list_topics(timeout=60).brokers)
    if client == "kafka-python":
        admin = kafka.KafkaAdminClient(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(bearer),
        )
        listed = admin.list_topics()
        admin.close()
        return isinstance(listed, list)
    given: dict[str, object] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": lambda: BearerToken(bearer, time.time() + 600),
    }
    with Admin(address, given) as ours:
        return isinstance(ours.list_topics(), list)


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python", "pybroker"])
def test_clients_log_in_by_a_token(unsecured: str, secured: str, client: str) -> None:
    assert topics_of(client, unsecured, unsigned())
    assert topics_of(client, secured, signed())


def test_kafkas_tools_log_in_by_a_token(unsecured: str, tmp_path: Path) -> None:
    programs.kafka_tools()
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={_LOGIN} required unsecuredLoginStringClaim_sub="alice";\n'
    )
    done = run_java_tool("topics", "--bootstrap-server", unsecured, "--command-config", str(config), "--list")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "unsigned tokens are accepted only with"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "http://issuer/keys"}, "an https: or file: address"),
        ({"sasl.oauthbearer.clock.skew.seconds": "-1", "sasl.oauthbearer.jwks.endpoint.url": "file:///k"}, "clock"),
        ({"sasl.oauthbearer.sasl.server.callback.handler.class": "my.Handler"}, "Handler"),
    ],
)
def test_what_would_let_in_others_is_refused_at_the_start(given: dict[str, str], words: str) -> None:
    texts = {**settings(1, 2), "sasl.enabled.mechanisms": "OAUTHBEARER"}
    texts |= {
        name.replace("sasl.oauthbearer.sasl.", "listener.name.sasl.oauthbearer.sasl."): one
        for name, one in given.items()
    }
    with pytest.raises(ConfigError, match=words):
        BrokerConfig(texts)
