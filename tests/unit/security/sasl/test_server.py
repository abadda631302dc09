"""Exchanges of connections: their order, their end, and re-authentication."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pybroker.config.security.sasl import ListenerSasl
from pybroker.metadata.image import ScramImage
from pybroker.protocol.errors import ErrorCode
from pybroker.security.principal_builder import BuilderError, Proof
from pybroker.security.principals import Principal
from pybroker.security.sasl.server import Authenticated, SaslServer

ALICE, BOB = b"\0alice\0a", b"\0bob\0b"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256")


class Client(NamedTuple):
    """A connection as its next request shows it."""

    connection: int = 1
    listener: str = "IN"
    peer_host: str = "192.0.2.1"
    principal: tuple[str, str] | None = None


class Server:
    """A server whose clock the test sets."""

    def __init__(self, max_reauth_ms: int = 0, builder: Callable[[Proof], Principal] | None = None) -> None:
        self.now = 1_000_000
        self.proved: list[tuple[int, Principal, int | None]] = []
        users = {"alice": "a", "bob": "b"}
        self.sasl = SaslServer(
            {"IN": ListenerSasl(MECHANISMS, users, dict.fromkeys(MECHANISMS, max_reauth_ms))},
            scram=ScramImage,
            prove=lambda *proved: self.proved.append(proved),
            nonce=lambda: "n",
            wall_ms=lambda: self.now,
            builder=builder,
        )

    def respond(self, client: Client, token: bytes) -> Authenticated:
        """The answer to a token that needs no thread."""
        outcome = self.sasl.authenticate(client, token)
        assert isinstance(outcome, Authenticated)
        return outcome

    def log_in(self, client: Client, token: bytes = ALICE, mechanism: str = "PLAIN") -> ErrorCode:
        begun = self.sasl.handshake(client, mechanism)
        return begun.error_code or self.respond(client, token).error_code


def test_a_proof_is_said_to_the_data_plane_and_then_forgotten() -> None:
    server = Server()
    assert server.log_in(Client()) is ErrorCode.NONE
    assert server.proved == [(1, Principal("User", "alice"), None)]
    assert len(server.sasl) == 0


def test_a_mechanism_that_the_listener_has_not_is_answered_with_those_that_it_has() -> None:
    server = Server()
    response = server.sasl.handshake(Client(), "GSSAPI")
    assert response == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, MECHANISMS, True)
    assert server.sasl.handshake(Client(listener="OTHER"), "PLAIN").error_code is ErrorCode.ILLEGAL_SASL_STATE


def test_a_refused_client_begins_from_nothing() -> None:
    server = Server()
    server.sasl.handshake(Client(), "PLAIN")
    response = server.respond(Client(), b"\0alice\0wrong")
    assert response.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.fails
    assert server.respond(Client(), ALICE) == (ErrorCode.ILLEGAL_SASL_STATE, None, b"", 0, True)
    assert server.proved == []
    assert len(server.sasl) == 0


def test_words_that_a_mechanism_does_not_choose_say_nothing() -> None:
    server = Server()
    server.sasl.handshake(Client(), "SCRAM-SHA-256")
    response = server.respond(Client(), b"rubbish")
    assert response.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )


def test_a_second_handshake_during_an_exchange_ends_the_connection() -> None:
    server = Server()
    server.sasl.handshake(Client(), "PLAIN")
    assert server.sasl.handshake(Client(), "PLAIN") == (ErrorCode.ILLEGAL_SASL_STATE, (), True)
    assert server.respond(Client(), ALICE).fails


def test_the_state_of_a_connection_goes_with_it() -> None:
    server = Server()
    for connection in range(100):
        server.sasl.handshake(Client(connection), "PLAIN")
    assert len(server.sasl) == 100
    for connection in range(100):
        server.sasl.forget(connection)
    assert len(server.sasl) == 0


def test_who_need_not_authenticate_again_may_not() -> None:
    server, proved = Server(), Client(principal=("User", "alice"))
    server.log_in(Client())
    assert server.sasl.handshake(proved, "PLAIN") == (ErrorCode.ILLEGAL_SASL_STATE, (), False)
    response = server.respond(proved, ALICE)
    assert response.error_message == "SaslAuthenticate request received after successful authentication"
    assert not response.fails


def test_a_session_is_proved_again_by_the_same_principal_once_in_a_second() -> None:
    server, proved = Server(max_reauth_ms=60_000), Client(principal=("User", "alice"))
    assert server.log_in(Client()) is ErrorCode.NONE
    assert server.log_in(proved) is ErrorCode.NONE
    assert server.sasl.handshake(proved, "PLAIN") == (ErrorCode.ILLEGAL_SASL_STATE, (), False)
    server.now += 1000
    assert server.sasl.handshake(proved, "PLAIN", bare=True) == (ErrorCode.ILLEGAL_SASL_STATE, (), False)
    assert server.log_in(proved) is ErrorCode.NONE
    assert [lifetime for _, _, lifetime in server.proved] == [60_000] * 3
    server.now += 1000
    server.sasl.handshake(proved, "PLAIN")
    response = server.respond(proved, BOB)
    assert response.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert response.fails
    assert len(server.proved) == 3


def test_a_session_is_proved_again_by_the_same_mechanism() -> None:
    server, proved = Server(max_reauth_ms=60_000), Client(principal=("User", "alice"))
    server.log_in(Client())
    assert server.sasl.handshake(proved, "SCRAM-SHA-256").error_code is ErrorCode.NONE
    response = server.respond(proved, b"n,,n=alice,r=x")
    assert response.error_message == (
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    )
    assert response.fails


def test_changed_settings_hold_from_the_next_handshake_on() -> None:
    server = Server()
    server.sasl.reconfigure({"IN": ListenerSasl(("PLAIN",), {"carol": "c"}, {"PLAIN": 5})})
    assert server.log_in(Client()) is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert server.log_in(Client(), b"\0carol\0c") is ErrorCode.NONE
    assert server.proved == [(1, Principal("User", "carol"), 5)]


def test_a_builder_of_ones_own_says_who_has_proved_a_name() -> None:
    requested: list[Proof] = []

    def build(proof: Proof) -> Principal:
        requested.append(proof)
        return Principal("Group", "readers")

    server = Server(builder=build)
    assert server.log_in(Client()) is ErrorCode.NONE
    assert server.proved == [(1, Principal("Group", "readers"), None)]
    assert requested == [Proof("IN", "192.0.2.1", "PLAIN", "alice")]


def test_a_builder_is_asked_of_who_has_proved_something_only() -> None:
    def build(proof: Proof) -> Principal:
        raise AssertionError(proof)

    server = Server(builder=build)
    assert server.log_in(Client(), b"\0alice\0wrong") is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert server.proved == []


def test_whom_a_builder_fails_at_is_refused_without_its_words() -> None:
    def build(_: Proof) -> Principal:
        raise BuilderError("the principal builder x:Y failed: KeyError")

    server = Server(builder=build)
    assert server.sasl.handshake(Client(), "PLAIN").error_code is ErrorCode.NONE
    response = server.respond(Client(), ALICE)
    assert (response.error_code, response.fails) == (ErrorCode.SASL_AUTHENTICATION_FAILED, True)
    assert "x:Y" not in (response.error_message or "")
    assert server.proved == []
    assert len(server.sasl) == 0


def test_a_builder_makes_nobody_another_while_the_connection_lasts() -> None:
    """It may say another principal of the same name later: the connection ends (KIP-368)."""
    reported = iter((Principal("Group", "readers"), Principal("Group", "writers")))
    server = Server(max_reauth_ms=60_000, builder=lambda _: next(reported))
    assert server.log_in(Client()) is ErrorCode.NONE
    again = Client(principal=("Group", "readers"))
    assert server.sasl.handshake(again, "PLAIN").error_code is ErrorCode.NONE
    response = server.respond(again, ALICE)
    assert response.error_message == (
        "Cannot change principals during re-authentication from Group.readers: Group.writers"
    )
