"""What delegation tokens are proved by, and the logins by them."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode

from pybroker.metadata.image import DelegationToken, DelegationTokensImage
from pybroker.metadata.tokens_delta import tokens_image
from pybroker.security.delegation_tokens import DelegationTokens
from pybroker.security.sasl.scram import Decoys, ScramExchange
from pybroker.security.sasl.steps import Challenge, Outcome, Proved, Refused, Work
from pybroker.security.scram import client_proof, salted_password
from pybroker.security.scram_mechanisms import SCRAM_SHA_512


def a_token(token_id: str = "one", expires_ms: int = 1000) -> DelegationToken:
    return DelegationToken(token_id, "User:alice", "User:root", (), 0, expires_ms, 2000)


class Node:
    """A node whose tokens and clock the test sets."""

    def __init__(self, *tokens: DelegationToken) -> None:
        self.now = 10
        self.know(*tokens)
        self.tokens = DelegationTokens("secret", lambda: self.image, lambda: self.now)

    def know(self, *tokens: DelegationToken) -> None:
        self.image = tokens_image(tokens)

    def first(self, token_id: str = "one", extension: str = "tokenauth=true") -> tuple[ScramExchange, str, str]:
        exchange = ScramExchange(SCRAM_SHA_512, {}, "BROKER", Decoys(), self.tokens)
        bare = f"n={token_id},r=abc,{extension}"
        step = exchange.step(f"n,,{bare}".encode())
        assert isinstance(step, Challenge), step
        return exchange, bare, step.token.decode()

    def log_in(self, token_id: str = "one", password: str | None = None, extension: str = "tokenauth=true") -> Outcome:
        exchange, bare, server_first = self.first(token_id, extension)
        parts = dict(part.split("=", 1) for part in server_first.split(","))
        right = b64encode(self.tokens.hmac(token_id)).decode()
        salt, iterations = b64decode(parts["s"]), int(parts["i"])
        salted = salted_password(SCRAM_SHA_512, right if password is None else password, salt, iterations)
        without = f"c=biws,r={parts['r']}"
        proof = client_proof(SCRAM_SHA_512, salted, f"{bare},{server_first},{without}".encode())
        step = exchange.step(f"{without},p={b64encode(proof).decode()}".encode())
        return step.decide() if isinstance(step, Work) else step


def test_the_proof_of_a_token_is_kafkas() -> None:
    tokens = DelegationTokens("secret", DelegationTokensImage, lambda: 0)
    assert tokens.hmac("id") == hmac.digest(b"secret", b"id", hashlib.sha512)
    assert repr(tokens) == "DelegationTokens([hidden])"


def test_a_token_is_found_by_its_proof_while_it_is_there() -> None:
    node = Node(a_token(), a_token("two"))
    assert node.tokens.find(node.tokens.hmac("two")) == a_token("two")
    assert node.tokens.find(b"") is None
    assert node.tokens.find(node.tokens.hmac("three")) is None
    node.know(a_token("three"))
    assert node.tokens.find(node.tokens.hmac("two")) is None
    assert node.tokens.find(node.tokens.hmac("three")) == a_token("three")


def test_who_has_the_token_is_its_owner_until_it_ends() -> None:
    node = Node(a_token())
    proved = node.log_in()
    assert isinstance(proved, Proved)
    assert (proved.name, proved.expires_ms, proved.by_token) == ("alice", 1000, True)
    assert isinstance(node.log_in(extension="a=b,tokenauth=TRUE,c=d"), Proved)
    assert isinstance(node.log_in(password="wrong"), Refused)
    node.now = 1000
    assert isinstance(node.log_in(), Refused)
    node.know(a_token(expires_ms=2500))
    node.now = 2000
    assert isinstance(node.log_in(), Refused), "its longest life is over"


def test_what_is_said_first_does_not_show_whether_there_is_such_a_token() -> None:
    with_it, without = Node(a_token()), Node()
    assert with_it.first()[2] == without.first()[2]
    assert with_it.first()[2] != with_it.first("two")[2]
    refused = without.log_in()
    assert isinstance(refused, Refused)
    assert refused.words is None


def test_a_token_that_came_and_went_leaves_nothing() -> None:
    node = Node(a_token())
    node.log_in()
    node.know()
    assert isinstance(node.log_in(), Refused)
    assert len(node.tokens._credentials) == 0


def test_a_token_id_is_no_user() -> None:
    assert isinstance(Node(a_token()).log_in(extension="tokenauth=false"), Refused)
