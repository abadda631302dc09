"""OAUTHBEARER's tokens: from a function, from a server of tokens, from a file; renewed before they end."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybroker.client import native
from pybroker.client.errors import AuthenticationError, SettingError
from pybroker.client.security import BearerToken, open_security
from pybroker.client.settings import AdminSettings
from pybroker.config.security.oauth import BearerSettings
from pybroker.security.sasl.web_tokens import Validator
from tests.support.conditions import wait_until


def credentials(**properties: Any) -> native.SaslCredentials:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **properties}
    settings = AdminSettings.of_client("h:1", given)
    open_security(settings)
    made = settings.credentials
    assert made is not None
    return made


class TokenServer(http.server.BaseHTTPRequestHandler):
    """Answers the client credentials grant of one client."""

    response: bytes = b""
    status = 200
    seen: list[tuple[str, str]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        """Give the token."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append((self.headers["Authorization"], body))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.response)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[tuple[str, type[TokenServer]]]:
    handler = type("Handler", (TokenServer,), {"seen": []})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/token", handler
        server.shutdown()
        thread.join()


GRANT = {
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": "s3cret",
    "sasl.oauthbearer.scope": "kafka",
}


def test_a_token_is_fetched_with_the_clients_id_and_secret(server: tuple[str, type[TokenServer]]) -> None:
    url, handler = server
    handler.response = json.dumps({"access_token": "e.y.J", "expires_in": 600}).encode()
    made = credentials(**GRANT, **{"sasl.oauthbearer.token.endpoint.url": url})
    assert made.begin("h")[1] == b"n,,\x01auth=Bearer e.y.J\x01\x01"
    assert handler.seen == [("Basic bWU6czNjcmV0", "grant_type=client_credentials&scope=kafka")]


@pytest.mark.parametrize(
    ("status", "response", "words"),
    [
        (401, b"{}", "returned 401"),
        (200, b"no json", "no token"),
        (200, b"{}", "no access_token"),
        (200, b'{"access_token": "a\\u0001b"}', "characters that no bearer token has"),
    ],
)
def test_a_server_of_tokens_that_gives_none_is_quoted(
    server: tuple[str, type[TokenServer]], status: int, response: bytes, words: str
) -> None:
    url, handler = server
    handler.response, handler.status = response, status
    with pytest.raises(AuthenticationError, match=words) as error:
        credentials(**GRANT, **{"sasl.oauthbearer.token.endpoint.url": url})
    assert "s3cret" not in str(error.value)


def test_a_token_lies_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("e.y.J\n")
    made = credentials(**{"sasl.oauthbearer.token.endpoint.url": f"file://{tmp_path}/token"})
    assert b"Bearer e.y.J\x01" in made.begin("h")[1]


def test_a_token_is_renewed_before_it_ends() -> None:
    calls: list[float] = []

    def provide() -> BearerToken:
        calls.append(time.time())
        return BearerToken(f"token{len(calls)}", time.time() + 1, {"logicalCluster": "a"})

    made = credentials(**{"sasl.oauthbearer.token.provider": provide})
    assert b"Bearer token1\x01logicalCluster=a\x01" in made.begin("h")[1]
    wait_until(lambda: b"Bearer token1\x01" not in made.begin("h")[1], within=60, what="the token is renewed")


def test_a_token_that_ended_is_not_shown() -> None:
    made = native.SaslCredentials.oauthbearer()
    with pytest.raises(AuthenticationError, match="none was given"):
        made.begin("h")
    made.set_token("t", 1, [])
    with pytest.raises(AuthenticationError, match="it expired"):
        made.begin("h")


def test_an_extension_cannot_take_the_tokens_place() -> None:
    with pytest.raises(SettingError, match="extension 'auth'"):
        credentials(**{"sasl.oauthbearer.token.provider": lambda: BearerToken("t", None, {"auth": "Bearer other"})})


MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def test_a_client_makes_tokens_that_nobody_signs_of_its_login_module() -> None:
    options = (
        "unsecuredLoginStringClaim_user=alice unsecuredLoginPrincipalClaimName=user unsecuredLoginLifetimeSeconds=9 "
        'unsecuredLoginListClaim_scope="|read|write" unsecuredLoginNumberClaim_level=2 unsecuredLoginExtension_trace=on'
    )
    made = credentials(**{"sasl.jaas.config": f"{MODULE} {options};"})
    head, token, extension, *_ = made.begin("h")[1].split(b"\x01")
    assert (head, extension) == (b"n,,", b"trace=on")
    bearer = BearerSettings(None, user_claim="user", scopes=("read",))
    now = time.time()
    checked = Validator(bearer, lambda: int(now * 1000)).check(token.removeprefix(b"auth=Bearer ").decode())
    assert checked.user == "alice"
    assert now + 7 < checked.expires_ms / 1000 <= now + 9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("unsecuredLoginStringClaim_user=a", "needs unsecuredLoginStringClaim_sub"),
        ("unsecuredLoginStringClaim_sub=a unsecuredLoginLifetimeSeconds=-1", "must be a number above 0"),
        ("unsecuredLoginStringClaim_sub=a unsecuredLoginNumberClaim_level=high", "level=high: must be a number"),
        ("unsecuredLoginStringClaim_sub=a unsecuredLoginNumberClaim_exp=1", "the claim exp is computed from"),
    ],
)
def test_a_token_that_would_say_nothing_is_refused(options: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        credentials(**{"sasl.jaas.config": f"{MODULE} {options};"})


def test_a_token_comes_from_one_place() -> None:
    given = {"sasl.jaas.config": f"{MODULE} unsecuredLoginStringClaim_sub=a;"}
    with pytest.raises(SettingError, match="set only one of them"):
        credentials(**given, **{"sasl.oauthbearer.token.endpoint.url": "file:///t"})
