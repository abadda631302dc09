"""Users of SCRAM as options: both forms, and what is refused in Kafka's words, without the password."""

from __future__ import annotations

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.scram_options import parse_credential, parse_scram_user
from pybroker.client.administration.user_admin import ScramPassword
from pybroker.security.scram import salted_password, server_key, stored_key
from pybroker.security.scram_mechanisms import SCRAM_SHA_256


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=a=b,c", ScramPassword("SCRAM-SHA-256", "a=b,c")),
        ("iterations=8192,password=x", ScramPassword("SCRAM-SHA-256", "x", 8192)),
        ("iterations=,password=x", ScramPassword("SCRAM-SHA-256", "x")),
    ],
)
def test_a_credential_has_a_password_and_iterations(text: str, expected: ScramPassword) -> None:
    assert parse_credential("SCRAM-SHA-256", text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("secret", "Invalid credential property SCRAM-SHA-256=[hidden]"),
        ("iterations=9,password=secret", "Iterations 9 is less than the minimum 4096 required for SCRAM-SHA-256"),
    ],
)
def test_another_credential_is_refused(text: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_credential("SCRAM-SHA-256", text)
    assert str(caught.value) == words


def test_a_user_is_made_of_a_password_or_of_what_was_made_of_it() -> None:
    salted = salted_password(SCRAM_SHA_256, "secret", b"salt", 4096)
    record = parse_scram_user('SCRAM-SHA-256=[name=alice,password="secret",salt=c2FsdA==]')
    assert (record.name, record.mechanism, record.salt, record.iterations) == ("alice", 1, b"salt", 4096)
    assert record.stored_key == stored_key(SCRAM_SHA_256, salted)
    assert record.server_key == server_key(SCRAM_SHA_256, salted)
    hashed = parse_scram_user("SCRAM-SHA-256=[name=alice,saltedpassword=AAAA,salt=c2FsdA==]")
    assert hashed.stored_key == stored_key(SCRAM_SHA_256, bytes(3))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SCRAM-SHA-256", "Failed to find equals sign in SCRAM argument '[hidden]'"),
        ("SCRAM-SHA-1=[name=a,password=secret]", "The add-scram mechanism SCRAM-SHA-1 is not supported."),
        ("SCRAM-SHA-256=name=a,password=secret]", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a,password=secret", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[name=a,secret]", "No equals sign found in SCRAM component: [hidden]"),
        ("SCRAM-SHA-256=[password=secret]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=AA==]", "You must supply 'salt' with 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,password=x,other=y]", "Unknown SCRAM configurations: other"),
        ("SCRAM-SHA-256=[name=a,password=x,iterations=y]", "Failed to parse iterations count: y"),
        (
            "SCRAM-SHA-256=[name=a,password=x,iterations=1]",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM-SHA-256",
        ),
        (
            "SCRAM-SHA-256=[name=a,password=x,iterations=16385]",
            "The 'iterations' value must be <= 16384 for add-scram using SCRAM-SHA-256",
        ),
        ("SCRAM-SHA-256=[name=a,password=x,salt=?]", "Failed to decode given salt: it is not base64"),
    ],
)
def test_another_user_is_refused(text: str, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_scram_user(text)
    assert str(caught.value) == words
