"""The exchanges of connections: which mechanism each has chosen, how far it has come, who it is and until when.

Owns a state for each connection that authenticates, which is bounded and goes with the connection, and the rules of
re-authentication (KIP-368). Must not know how bytes come: `prove` says to the data plane who a connection is.

A connection that has proved itself is forgotten, unless it is going to be asked again.

Source: Kafka's SaslServerAuthenticator and KafkaChannel.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from pybroker.config.security.kerberos import GSSAPI
from pybroker.config.security.oauth import OAUTHBEARER
from pybroker.config.security.sasl import PLAIN
from pybroker.protocol.errors import ErrorCode
from pybroker.security.principal_builder import BuilderError, Proof
from pybroker.security.principals import Principal
from pybroker.security.sasl.bearer import BearerExchange
from pybroker.security.sasl.kerberos import GssapiExchange
from pybroker.security.sasl.kerberos_context import AcceptedContext
from pybroker.security.sasl.plain import PlainExchange
from pybroker.security.sasl.scram import Decoys, ScramExchange
from pybroker.security.sasl.steps import Challenge, Refused, Work
from pybroker.security.sasl.web_tokens import Validator
from pybroker.security.scram_mechanisms import SCRAM_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from pybroker.config.security.oauth import BearerSettings
    from pybroker.config.security.sasl import ListenerSasl
    from pybroker.metadata.image import ScramImage
    from pybroker.security.sasl.scram import TokenLogins
    from pybroker.security.sasl.steps import Exchange, Outcome

log = logging.getLogger("pybroker.security")

_WORKERS = 2
"""Threads that do what takes too long for the loop."""
_REAUTHENTICATION_PAUSE_MS = 1000
"""Kafka lets a client authenticate again once in a second at most."""


class Client(Protocol):
    """Whose exchange it is."""

    @property
    def connection(self) -> int:
        """Number of the connection."""

    @property
    def listener(self) -> str:
        """The listener that accepted it."""

    @property
    def peer_host(self) -> str:
        """The client's address."""

    @property
    def principal(self) -> tuple[str, str] | None:
        """Who it is, as kind and name; None while it has not proved that."""


class Handshake(NamedTuple):
    """The answer to SaslHandshake."""

    error_code: ErrorCode
    mechanisms: tuple[str, ...] = ()
    fails: bool = False
    """Whether the connection ends with the answer."""


class Authenticated(NamedTuple):
    """The answer to SaslAuthenticate."""

    error_code: ErrorCode
    error_message: str | None = None
    token: bytes = b""
    session_lifetime_ms: int = 0
    fails: bool = False
    """Whether the connection ends with the answer."""


class _Session(msgspec.Struct, gc=False):
    """How far one connection has come."""

    mechanism: str
    exchange: Exchange | None
    """None between a proof and the next handshake."""
    proved: Principal | None = None
    """Who it was before it authenticates again; None the first time."""
    by_token: bool = False
    """Whether that was by a delegation token."""
    bad_mechanism: str | None = None
    """What it asked for instead, when it began again: its next token is refused."""
    began_again_ms: int | None = None


class SaslServer:
    """The SASL of one node's listeners. Used from one event loop."""

    def __init__(
        self,
        listeners: Mapping[str, ListenerSasl],
        *,
        scram: Callable[[], ScramImage],
        prove: Callable[[int, Principal, int | None], None],
        nonce: Callable[[], str],
        wall_ms: Callable[[], int],
        tokens: TokenLogins | None = None,
        builder: Callable[[Proof], Principal] | None = None,
    ) -> None:
        """`prove` says who a connection is, and for how many ms, before it is answered; `nonce` makes random texts.
        Without `tokens` nobody logs in by a delegation token; without `builder` a name that is proved is a user's.
        """
        self._builder = builder
        self._tokens = tokens
        self._listeners = listeners
        self._scram = scram
        self._prove = prove
        self._nonce = nonce
        self._wall_ms = wall_ms
        # Invariant: a connection is here from its handshake until it ends, or proves itself for good.
        self._sessions: dict[int, _Session] = {}
        # Threads are made when there is work first, and wait for more.
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="pybroker-sasl")
        self._validators: dict[BearerSettings, Validator] = {}
        self._decoys = {name: Decoys() for name in SCRAM_BY_NAME}

    def __len__(self) -> int:
        """Return how many connections have a state."""
        return len(self._sessions)

    def reconfigure(self, listeners: Mapping[str, ListenerSasl]) -> None:
        """Take changed settings; they hold for every handshake from now on."""
        self._listeners = listeners
        settings = {one.bearer for one in listeners.values()}
        self._validators = {one: kept for one, kept in self._validators.items() if one in settings}

    def forget(self, connection: int) -> None:
        """Drop the state of a connection that has ended."""
        self._sessions.pop(connection, None)

    def close(self) -> None:
        """End the threads; what they do is not waited for."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def is_by_token(self, connection: int) -> bool:
        """Whether a connection has proved who it is by a delegation token; its session ends with the token."""
        session = self._sessions.get(connection)
        return session is not None and session.by_token

    def handshake(self, client: Client, mechanism: str, *, bare: bool = False) -> Handshake:
        """Begin an exchange, or say which mechanisms there are; `bare`: its tokens are frames of their own."""
        session = self._sessions.get(client.connection)
        offered = self._listeners.get(client.listener)
        if offered is None:
            return Handshake(ErrorCode.ILLEGAL_SASL_STATE)
        if session is not None and session.exchange is not None:
            self._note(client, f"sent a second SaslHandshake during its exchange by {session.mechanism}")
            return Handshake(ErrorCode.ILLEGAL_SASL_STATE, fails=True)
        if client.principal is not None and (bare or session is None or not self._may_begin_again(session)):
            return Handshake(ErrorCode.ILLEGAL_SASL_STATE)
        if mechanism not in offered.mechanisms:
            names = ", ".join(offered.mechanisms)
            # A client without SASL queries by an empty name what the listener expects (pybroker.client.mismatches).
            level = logging.WARNING if mechanism else logging.DEBUG
            self._note(client, f"asked for the SASL mechanism {mechanism[:64]!r}, {client.listener} has {names}", level)
            return Handshake(ErrorCode.UNSUPPORTED_SASL_MECHANISM, offered.mechanisms, fails=True)
        if session is None or session.proved is None:
            session = self._sessions[client.connection] = _Session(mechanism, None)
        else:
            session.began_again_ms = self._wall_ms()
            session.bad_mechanism = None if mechanism == session.mechanism else mechanism
        session.exchange = self._new_exchange(mechanism, offered)
        return Handshake(ErrorCode.NONE, offered.mechanisms)

    def authenticate(self, client: Client, token: bytes) -> Authenticated | Coroutine[None, None, Authenticated]:
        """Take a client's token; where a mechanism has work for a thread, the answer is to be awaited."""
        session = self._sessions.get(client.connection)
        if session is None or session.exchange is None:
            if client.principal is None:
                self._note(client, "sent a SaslAuthenticate before any SaslHandshake")
                return Authenticated(ErrorCode.ILLEGAL_SASL_STATE, fails=True)
            words = "SaslAuthenticate request received after successful authentication"
            return Authenticated(ErrorCode.ILLEGAL_SASL_STATE, words)
        if session.bad_mechanism is not None:
            return self._fail(client, session, _other_mechanism(session))
        step = session.exchange.step(token)
        return self._work(client, session, step) if isinstance(step, Work) else self._decide(client, session, step)

    async def _work(self, client: Client, session: _Session, work: Work) -> Authenticated:
        """Have a thread make the step. A connection sends nothing meanwhile that is worked on, but it may end."""
        step = await asyncio.get_running_loop().run_in_executor(self._workers, work.decide)
        if self._sessions.get(client.connection) is not session:
            return Authenticated(ErrorCode.ILLEGAL_SASL_STATE, fails=True)
        return self._decide(client, session, step)

    def _decide(self, client: Client, session: _Session, step: Outcome) -> Authenticated:
        """Answer what a mechanism has made of a token."""
        if isinstance(step, Challenge):
            return Authenticated(ErrorCode.NONE, token=step.token)
        if isinstance(step, Refused):
            return self._fail(client, session, step)
        try:
            principal = self._principal_of(client, session.mechanism, step.name)
        except BuilderError as error:
            return self._fail(client, session, Refused(str(error)))
        if session.proved not in (None, principal):
            return self._fail(client, session, _other_principal(session.proved, principal))
        lifetime = self._lifetime_ms(client, session.mechanism, step.expires_ms)
        again = "" if session.proved is None else " again"
        log.info("%s is %s%s, by %s on %s", client.peer_host, principal, again, session.mechanism, client.listener)
        if lifetime is None:
            del self._sessions[client.connection]
        else:
            session.exchange, session.proved, session.by_token = None, principal, step.by_token
        self._prove(client.connection, principal, lifetime)
        return Authenticated(ErrorCode.NONE, token=step.token, session_lifetime_ms=lifetime or 0)

    def _principal_of(self, client: Client, mechanism: str, name: str) -> Principal:
        if self._builder is None:
            return Principal("User", name)
        return self._builder(Proof(client.listener, client.peer_host, mechanism, name))

    def _new_exchange(self, mechanism: str, offered: ListenerSasl) -> Exchange:
        if mechanism == PLAIN:
            return PlainExchange(offered.plain_users)
        if offered.bearer is not None and mechanism == OAUTHBEARER:
            return BearerExchange(self._validator(offered.bearer))
        if offered.kerberos is not None and mechanism == GSSAPI:
            return GssapiExchange(partial(AcceptedContext, offered.kerberos), offered.kerberos.rules)
        scram = SCRAM_BY_NAME[mechanism]
        return ScramExchange(
            scram, self._scram().of(scram.number), self._nonce(), self._decoys[mechanism], self._tokens
        )

    def _validator(self, settings: BearerSettings) -> Validator:
        """Return what checks a listener's tokens: the same as long as its settings stay, as it keeps keys."""
        found = self._validators.get(settings)
        if found is None:
            found = self._validators[settings] = Validator(settings, self._wall_ms)
        return found

    def _may_begin_again(self, session: _Session) -> bool:
        began = session.began_again_ms
        return began is None or self._wall_ms() - began >= _REAUTHENTICATION_PAUSE_MS

    def _lifetime_ms(self, client: Client, mechanism: str, expires_ms: int | None) -> int | None:
        """Return for how many ms a proof holds, None for good."""
        offered = self._listeners.get(client.listener)
        most = 0 if offered is None else offered.max_reauth_ms.get(mechanism, 0)
        lifetimes = [most] if most else []
        if expires_ms is not None:
            lifetimes.append(max(0, expires_ms - self._wall_ms()))
        return min(lifetimes, default=None)

    def _fail(self, client: Client, session: _Session, refused: Refused) -> Authenticated:
        self._note(client, f"failed to authenticate by {session.mechanism}: {refused.reason}")
        what = "authentication" if session.proved is None else "re-authentication"
        words = refused.words or (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism {session.mechanism}"
        )
        self._sessions.pop(client.connection, None)
        return Authenticated(ErrorCode.SASL_AUTHENTICATION_FAILED, words, fails=True)

    def _note(self, client: Client, what: str, level: int = logging.WARNING) -> None:
        self._sessions.pop(client.connection, None)
        log.log(level, "%s on %s: %s", client.peer_host, client.listener, what)


def _other_mechanism(session: _Session) -> Refused:
    words = (
        f"SASL mechanism '{session.bad_mechanism}' requested by client is not supported for re-authentication of "
        f"mechanism '{session.mechanism}'"
    )
    return Refused(words, words)


def _other_principal(before: Principal | None, now: Principal) -> Refused:
    was = ("", "") if before is None else before
    words = f"Cannot change principals during re-authentication from {was[0]}.{was[1]}: {now.kind}.{now.name}"
    return Refused(words, words)
