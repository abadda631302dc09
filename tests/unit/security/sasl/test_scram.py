"""The broker's side of SCRAM: the exchange, and what is said of users that there are not."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest

from pybroker.metadata.image import ScramCredential
from pybroker.security.sasl.scram import Decoys, ScramExchange
from pybroker.security.sasl.steps import Challenge, Proved, Refused, Step
from pybroker.security.scram import client_proof, salted_password, server_key, server_signature, stored_key
from pybroker.security.scram_mechanisms import SCRAM_BY_NAME, ScramMechanism

SALT = b"0salt1salt2salt3salt4salt5"


def credential(mechanism: ScramMechanism, password: str, iterations: int = 4096) -> ScramCredential:
    salted = salted_password(mechanism, password, SALT, iterations)
    return ScramCredential(
        salt=SALT,
        stored_key=stored_key(mechanism, salted),
        server_key=server_key(mechanism, salted),
        iterations=iterations,
    )


SHA_256 = SCRAM_BY_NAME["SCRAM-SHA-256"]
USERS = {"alice": credential(SHA_256, "secret"), "a,b=c": credential(SHA_256, "x")}


def begun(first: str = "n,,n=alice,r=abc") -> tuple[ScramExchange, str]:
    exchange = ScramExchange(SHA_256, USERS, "BROKER", Decoys())
    step = exchange.step(first.encode())
    assert isinstance(step, Challenge), step
    return exchange, step.token.decode()


def finish(exchange: ScramExchange, first: str, server_first: str, password: str, **other: str) -> Step:
    """Answer a challenge; `other` are parts to send instead of the right ones."""
    parts = dict(part.split("=", 1) for part in server_first.split(","))
    gs2, bare = first[: first.index("n=")], first[first.index("n=") :]
    channel = other.get("c", b64encode(gs2.encode()).decode())
    without_proof = f"c={channel},r={other.get('r', parts['r'])}"
    salted = salted_password(SHA_256, password, b64decode(parts["s"]), int(parts["i"]))
    message = f"{bare},{server_first},{without_proof}".encode()
    proof = other.get("p", b64encode(client_proof(SHA_256, salted, message)).decode())
    step = exchange.step(f"{without_proof},p={proof}".encode())
    if isinstance(step, Proved):
        signature = server_signature(SHA_256, server_key(SHA_256, salted), message)
        assert step.token == b"v=" + b64encode(signature), "the broker knows the user"
    return step


@pytest.mark.parametrize(
    ("first", "password", "name"),
    [
        ("n,,n=alice,r=abc", "secret", "alice"),
        ("n,a=alice,n=alice,r=abc", "secret", "alice"),
        ("n,,n=a=2Cb=3Dc,r=abc", "x", "a,b=c"),
        ("n,,n=alice,r=abc,ext=1", "secret", "alice"),
    ],
)
def test_a_user_proves_that_it_knows_its_password(first: str, password: str, name: str) -> None:
    exchange, server_first = begun(first)
    assert server_first.startswith("r=abcBROKER,s=")
    step = finish(exchange, first, server_first, password)
    assert isinstance(step, Proved)
    assert step.name == name


def test_a_user_that_there_is_not_looks_like_one_until_the_end() -> None:
    first = "n,,n=nobody,r=abc"
    exchange, server_first = begun(first)
    assert server_first == begun(first)[1], "the salt of a name stays the same"
    assert server_first != begun(first.replace("nobody", "noone"))[1]
    parts = dict(part.split("=", 1) for part in server_first.split(","))
    assert len(b64decode(parts["s"])) == len(SALT)
    assert parts["i"] == "4096"
    there, there_first = begun()
    refused = [
        finish(exchange, first, server_first, "secret"),
        finish(there, "n,,n=alice,r=abc", there_first, "wrong"),
    ]
    assert [isinstance(step, Refused) and step.words for step in refused] == [None, None]


def test_who_knows_the_made_up_key_is_not_let_in() -> None:
    decoy = Decoys().of("nobody", USERS)
    assert decoy.stored_key == bytes(32)
    assert Decoys().of("a", {}).iterations == 4096


@pytest.mark.parametrize("other", [{"r": "abcOTHER"}, {"c": "eSws"}, {"p": "AAAA"}, {"p": "A"}])
def test_a_replayed_or_changed_last_message_is_refused(other: dict[str, str]) -> None:
    exchange, server_first = begun()
    step = finish(exchange, "n,,n=alice,r=abc", server_first, "secret", **other)
    assert isinstance(step, Refused)
    assert step.words is None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n=alice,r=abc",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,n=alice",
        b"n,,n=,r=abc",
        b"n,,n=a=2X,r=abc",
        b"n,,m=x,n=alice,r=abc",
        b"n,,n=alice,r=abc,tokenauth=true",
        b"n,,n=\xff,r=abc",
        b"n,,n=alice,r=" + b"a" * 9000,
    ],
)
def test_a_first_message_that_is_none_is_refused(first: bytes) -> None:
    step = ScramExchange(SHA_256, USERS, "BROKER", Decoys()).step(first)
    assert isinstance(step, Refused)
    assert step.words is None


def test_nobody_is_somebody_else() -> None:
    step = ScramExchange(SHA_256, USERS, "BROKER", Decoys()).step(b"n,a=bob,n=alice,r=abc")
    assert isinstance(step, Refused)
    assert step.words == ("Authentication failed: Client requested an authorization id that is different from username")
