"""GSSAPI: the messages around a security context that a script plays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pybroker.config.security.kerberos import LocalRule, parse_local_rules
from pybroker.security.sasl.kerberos import Context, ContextError, GssapiExchange
from pybroker.security.sasl.steps import Challenge, Outcome, Proved, Refused, Work

OFFER = b"\1\0\0\0"
DEFAULT = parse_local_rules(["DEFAULT"])


class Scripted:
    """A context that answers the tokens of a list, and stands after the last; what it signs begins with `signed `."""

    def __init__(self, *responses: bytes, initiator: str = "alice@REALM", realm: str = "REALM") -> None:
        self._responses = list(responses)
        self.taken: list[bytes] = []
        self.initiator, self.realm = initiator, realm

    @property
    def stands(self) -> bool:
        return not self._responses

    def accept(self, token: bytes) -> bytes:
        self.taken.append(token)
        if token == b"rubbish":
            raise ContextError("Invalid token was supplied")
        return self._responses.pop(0)

    def wrap(self, message: bytes) -> bytes:
        return b"signed " + message

    def unwrap(self, token: bytes) -> bytes:
        if not token.startswith(b"signed "):
            raise ContextError("A token had an invalid Message Integrity Check (MIC)")
        return token.removeprefix(b"signed ")


def exchange(context: Context, rules: tuple[LocalRule, ...] = DEFAULT) -> Callable[[bytes], Outcome]:
    """Steps of an exchange, each of which is work for a thread."""
    made = GssapiExchange(lambda: context, rules)

    def step(token: bytes) -> Outcome:
        work = made.step(token)
        assert isinstance(work, Work)
        return work.decide()

    return step


def test_a_context_that_stands_is_followed_by_an_offer_and_a_choice() -> None:
    context = Scripted(b"reply")
    step = exchange(context)
    assert step(b"ticket") == Challenge(b"reply")
    assert step(b"") == Challenge(b"signed " + OFFER)
    assert step(b"signed " + OFFER) == Proved("alice")
    assert context.taken == [b"ticket"]


def test_where_the_context_has_nothing_to_say_the_offer_comes_at_once() -> None:
    step = exchange(Scripted(b""))
    assert step(b"ticket") == Challenge(b"signed " + OFFER)
    assert step(b"signed " + OFFER + b"alice@REALM") == Proved("alice")


def test_a_context_may_take_several_tokens() -> None:
    step = exchange(Scripted(b"more", b"reply"))
    assert [step(token) for token in (b"one", b"two", b"")] == [
        Challenge(b"more"),
        Challenge(b"reply"),
        Challenge(b"signed " + OFFER),
    ]


def test_a_context_that_never_stands_ends() -> None:
    step = exchange(Scripted(*[b"more"] * 100))
    for _ in range(8):
        assert step(b"again") == Challenge(b"more")
    assert isinstance(step(b"again"), Refused)


@pytest.mark.parametrize("wanted", [b"", b"alice/host@REALM", b"alice", b"admin", b"kafka@host", b"\xff"])
def test_a_client_is_whom_its_ticket_names_whoever_it_asks_to_be(wanted: bytes) -> None:
    step = exchange(Scripted(b"", initiator="alice/host@REALM"))
    step(b"ticket")
    assert step(b"signed " + OFFER + wanted) == Proved("alice")


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (b"signed \2\0\0\0", "chose security layer 2"),
        (b"signed \0\0\0\0", "chose security layer 0"),
        (b"signed \1\0\0", "has 3 bytes"),
        (OFFER, "Message Integrity Check"),
        (b"", "Message Integrity Check"),
    ],
)
def test_another_choice_is_refused(choice: bytes, why: str) -> None:
    step = exchange(Scripted(b"reply"))
    step(b"ticket")
    step(b"")
    refused = step(choice)
    assert isinstance(refused, Refused)
    assert why in refused.reason
    assert refused.words is None, "the client learns that it has failed, not why"


def test_a_choice_before_the_offer_proves_nothing() -> None:
    step = exchange(Scripted(b"reply"))
    step(b"ticket")
    assert isinstance(step(b"signed " + OFFER), Refused)


def test_a_bad_token_and_a_context_that_cannot_be_had_are_refused_in_the_librarys_words() -> None:
    assert exchange(Scripted(b"reply"))(b"rubbish") == Refused("Invalid token was supplied")

    def lacking() -> Context:
        raise ContextError("the broker's own keys of kafka/host@REALM: No key table entry found")

    work = GssapiExchange(lacking, DEFAULT).step(b"ticket")
    assert isinstance(work, Work)
    assert work.decide() == Refused("the broker's own keys of kafka/host@REALM: No key table entry found")


def test_whom_no_rule_is_for_is_refused() -> None:
    step = exchange(Scripted(b"", initiator="alice@OTHER"))
    step(b"ticket")
    refused = step(b"signed " + OFFER)
    assert isinstance(refused, Refused)
    assert "alice@OTHER" in refused.reason
