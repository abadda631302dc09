"""PLAIN: what is let in, and what a refusal says."""

from __future__ import annotations

import pytest

from pybroker.security.sasl.plain import PlainExchange
from pybroker.security.sasl.steps import Proved, Refused

USERS = {"alice": "secret", "bob": "b"}
INVALID = "Authentication failed: Invalid username or password"
OTHER = "Authentication failed: Client requested an authorization id that is different from username"


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret"])
def test_a_user_proves_itself_by_its_password(token: bytes) -> None:
    assert PlainExchange(USERS).step(token) == Proved("alice")


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (b"\0alice\0wrong", INVALID),
        (b"\0nobody\0secret", INVALID),
        (b"bob\0alice\0secret", OTHER),
        (b"\0alice\0", None),
        (b"\0\0secret", None),
        (b"\0alice", None),
        (b"\0alice\0secret\0", None),
        (b"", None),
        (b"\xff\0alice\0secret", None),
    ],
)
def test_a_refusal_does_not_say_who_there_is(token: bytes, words: str | None) -> None:
    step = PlainExchange(USERS).step(token)
    assert isinstance(step, Refused)
    assert step.words == words
    assert "secret" not in step.reason


def test_nobody_has_no_password() -> None:
    assert isinstance(PlainExchange({}).step(b"\0a\0b"), Refused)
