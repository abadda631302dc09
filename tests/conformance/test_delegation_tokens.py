"""Delegation tokens (KIP-48): made, renewed, ended and listed as with Kafka, and logins by them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pybroker.cli.main import main
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.token_admin import Token
from pybroker.client.errors import BrokerError
from pybroker.protocol.errors import ErrorCode
from tests.conformance.conftest import AGAINST_KAFKA
from tests.conformance.sasl_clients import NONE, SASL_AUTHENTICATION_FAILED, handshake, sasl_server, scram_last, token
from tests.support import kafka_tools, programs
from tests.support.conditions import wait_until
from tests.support.wire import Wire

pytestmark = pytest.mark.timeout(300)

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORDS = {"alice": "alice secret", "bob": "b"}
SECRET = {
    "delegation.token.secret.key": "of all nodes",
    "delegation.token.max.lifetime.ms": "600000",
    "delegation.token.expiry.time.ms": "60000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:alice;User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[str, str]]:
    with sasl_server(AGAINST_KAFKA, SECRET) as (requested, plain):
        yield requested, plain


def properties(user: str) -> dict[str, object]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_PLAIN} required username="{user}" password="{PASSWORDS[user]}";',
    }


def by_token(one: Token) -> dict[str, object]:
    words = f'username="{one.token_id}" password="{one.password}" tokenauth="true"'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f"{_SCRAM} required {words};",
        "retries": "0",
    }


@pytest.fixture
def alice(addresses: tuple[str, str]) -> Iterator[Admin]:
    with Admin(addresses[0], properties("alice")) as admin:
        yield admin


@pytest.fixture
def bob(addresses: tuple[str, str]) -> Iterator[Admin]:
    with Admin(addresses[0], properties("bob")) as admin:
        yield admin


def make(admin: Admin, **named: Any) -> Token:
    """A token that the broker lets in: Kafka answers before that."""
    made = admin.create_token(**named)
    wait_until(lambda: made in admin.describe_tokens(), within=60, what="the token is known")
    return made


def end(admin: Admin, made: Token, period_ms: int = -1) -> int:
    """When a token ends that the broker knows to end then."""
    at = admin.expire_token(made.hmac, period_ms)
    ends = None if period_ms < 0 else at
    wait_until(lambda: expiry(admin, made) == ends, within=60, what="the end is known")
    return at


def expiry(admin: Admin, made: Token) -> int | None:
    return next((one.expires_ms for one in admin.describe_tokens() if one.token_id == made.token_id), None)


def refusal(call: Any, *arguments: Any, **named: Any) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        call(*arguments, **named)
    return refused.value.code


def log_in(
    address: str, token_id: str, password: str, mechanism: str = "SCRAM-SHA-256", name: str = "tokenauth"
) -> Any:
    """The answer to the last message of a login by a token; that to the first where it is refused."""
    first = f"n,,n={token_id},r=abcdef,{name}=true"
    with Wire(address) as wire:
        handshake(wire, mechanism)
        challenge = token(wire, first.encode())
        if challenge.error_code:
            return challenge
        return token(wire, scram_last(mechanism, password, first, challenge.auth_bytes.decode()))


def test_a_token_is_made_found_renewed_and_ended(alice: Admin) -> None:
    made = make(alice, renewers=["User:bob"], max_lifetime_ms=120_000)
    assert (made.owner, made.requester, made.renewers) == ("User:alice", "User:alice", ("User:bob",))
    assert len(made.hmac) == 64
    assert (made.expires_ms - made.issued_ms, made.ends_ms - made.issued_ms) == (60_000, 120_000)
    assert alice.describe_tokens(["User:nobody"]) == []
    assert end(alice, made, 1000) < made.expires_ms
    renewed = alice.renew_token(made.hmac, 30_000)
    assert made.issued_ms + 30_000 <= renewed < made.ends_ms
    wait_until(lambda: expiry(alice, made) == renewed, within=60, what="the token is renewed")
    assert made.issued_ms <= end(alice, made) < renewed
    assert refusal(alice.renew_token, made.hmac) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_logs_in_by_a_token_is_its_owner_until_it_ends(
    addresses: tuple[str, str], alice: Admin, mechanism: str
) -> None:
    made = make(alice)
    response = log_in(addresses[0], made.token_id, made.password, mechanism)
    assert response.error_code == NONE
    assert 0 < response.session_lifetime_ms <= 60_000
    wrong = log_in(addresses[0], made.token_id, b64encode(bytes(64)).decode(), mechanism)
    assert wrong.error_code == SASL_AUTHENTICATION_FAILED
    without = log_in(addresses[0], made.token_id, made.password, mechanism, name="other")
    assert without.error_code == SASL_AUTHENTICATION_FAILED, "its id is no user of SCRAM"
    end(alice, made)
    again = log_in(addresses[0], made.token_id, made.password, mechanism)
    assert again.error_code == SASL_AUTHENTICATION_FAILED, "a token that was ended is not taken again"
    assert again.error_message == (
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )


def test_a_token_makes_no_tokens(addresses: tuple[str, str], alice: Admin) -> None:
    made = make(alice)
    with Admin(addresses[0], by_token(made)) as admin:
        assert admin.list_topics() is not None
        not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert refusal(admin.create_token) is not_allowed
        assert refusal(admin.renew_token, made.hmac) is not_allowed
        assert refusal(admin.expire_token, made.hmac) is not_allowed
        assert refusal(admin.describe_tokens) is not_allowed


def test_who_has_not_proved_who_it_is_gets_no_token(addresses: tuple[str, str]) -> None:
    with Admin(addresses[1]) as nobody:
        not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert refusal(nobody.create_token) is not_allowed
        assert refusal(nobody.renew_token, b"x") is not_allowed
        assert refusal(nobody.expire_token, b"x") is not_allowed
        assert refusal(nobody.describe_tokens) is not_allowed


def test_the_token_of_another_is_not_ones_own(alice: Admin, bob: Admin) -> None:
    made = make(alice)
    assert refusal(bob.renew_token, made.hmac) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert refusal(bob.expire_token, made.hmac) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert made.token_id not in [one.token_id for one in bob.describe_tokens()]
    assert made.token_id not in [one.token_id for one in bob.describe_tokens(["User:alice"])]
    shared = make(alice, renewers=["User:bob"])
    assert shared.token_id in [one.token_id for one in bob.describe_tokens()]
    assert bob.renew_token(shared.hmac, 1000) > 0


def test_a_token_for_another_needs_the_right_to_make_it(alice: Admin, bob: Admin) -> None:
    assert refusal(bob.create_token, owner="User:alice") is ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    made = make(alice, owner="User:bob")
    assert (made.owner, made.requester) == ("User:bob", "User:alice")
    assert made.token_id in [one.token_id for one in bob.describe_tokens(["User:bob"])]
    assert bob.expire_token(made.hmac) < made.expires_ms


def test_only_users_renew(alice: Admin) -> None:
    assert refusal(alice.create_token, renewers=["Group:all"]) is ErrorCode.INVALID_PRINCIPAL_TYPE


def test_a_token_that_has_ended_is_refused(alice: Admin, bob: Admin) -> None:
    made = make(alice)
    end(alice, made, 0)
    expired = ErrorCode.DELEGATION_TOKEN_EXPIRED
    wait_until(lambda: is_refused(alice, made), within=60, what="its last millisecond is over")
    assert refusal(alice.renew_token, made.hmac) is expired
    assert refusal(alice.expire_token, made.hmac, 1000) is expired
    assert refusal(bob.renew_token, made.hmac) is expired
    assert refusal(bob.expire_token, made.hmac, 1000) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert alice.expire_token(made.hmac, -1) > made.issued_ms, "it can be removed"


def is_refused(admin: Admin, made: Token) -> bool:
    try:
        admin.expire_token(made.hmac, 0)
    except BrokerError:
        return True
    return False


def test_without_a_secret_there_are_none() -> None:
    with sasl_server(AGAINST_KAFKA) as (requested, _), Admin(requested, properties("alice")) as admin:
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert refusal(admin.create_token) is disabled
        assert refusal(admin.expire_token, b"x") is disabled
        assert refusal(admin.describe_tokens) is disabled
        assert log_in(requested, "nobody", "x").error_code == SASL_AUTHENTICATION_FAILED


@pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka does not bound the tokens of an owner")
def test_an_owner_has_no_more_tokens_than_the_settings_allow(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    programs.kafka_tools()
    config = tmp_path / "alice.properties"
    config.write_text("".join(f"{name}={text}\n" for name, text in properties("alice").items()))
    limited = {**SECRET, "delegation.token.max.per.owner": "2"}
    with sasl_server(False, limited) as (requested, _), Admin(requested, properties("alice")) as admin:
        first, _ = make(admin), make(admin)
        assert refusal(admin.create_token) is ErrorCode.POLICY_VIOLATION
        assert "User:alice has 2 delegation tokens (delegation.token.max.per.owner=2)" in caplog.text
        with Admin(requested, properties("bob")) as bob:
            make(bob)
        create = ["--create", "--max-life-time-period", "-1", "--bootstrap-server", requested]
        done = kafka_tools.run("delegation-tokens", *create, "--command-config", str(config))
        assert "PolicyViolationException" in done.stdout + done.stderr
        end(admin, first)
        make(admin)


def test_the_tool_prints_what_kafkas_prints(
    addresses: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    programs.kafka_tools()
    config = tmp_path / "alice.properties"
    config.write_text("".join(f"{name}={text}\n" for name, text in properties("alice").items()))
    where = ["--bootstrap-server", addresses[0], "--command-config", str(config)]
    create = ["--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"]

    def theirs(*words: str) -> str:
        done = kafka_tools.run("delegation-tokens", *where, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ours(*words: str) -> str:
        capfd.readouterr()
        assert main(["delegation-tokens", *where, *words]) == 0
        return capfd.readouterr().out

    def of_any(text: str) -> str:
        """The text with ids, proofs and minutes alike."""
        text = re.sub(r"\b[\w-]{22}(?=\s)", "I" * 22, re.sub(r"[\w+/]{86}==", "H" * 88, text))
        return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "D", text)

    made = theirs(*create)
    assert of_any(ours(*create)) == of_any(made)
    hmac = re.search(r"[\w+/]{86}==", made)
    assert hmac is not None
    for words in (
        ["--renew", "--renew-time-period", "-1", "--hmac", hmac[0]],
        ["--expire", "--expiry-time-period", "50000", "--hmac", hmac[0]],
        ["--describe", "--owner-principal", "User:nobody"],
    ):
        assert of_any(ours(*words)) == of_any(theirs(*words)), words
    # Without owners Kafka's tool asks for the tokens of none, whatever its help says; ours asks for all.
    mine, its = (print_of("--describe", "--owner-principal", "User:alice") for print_of in (ours, theirs))
    assert sorted(mine.splitlines()) == sorted(its.splitlines())
