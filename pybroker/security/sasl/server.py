"""The SASL exchanges of connections: chosen mechanism, progress, principal and session lifetime.

Owns a bounded state for each connection that authenticates, which is removed with the connection, and the rules of
re-authentication (KIP-368). Must not know how bytes arrive: `prove` passes the principal to the data plane.

The state of an authenticated connection is removed, unless it must re-authenticate.

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
"""Threads for steps that take too long for the loop."""
_REAUTHENTICATION_PAUSE_MS = 1000
"""Kafka allows a re-authentication at most once a second."""


class Client(Protocol):
    """The client of an exchange."""

    @property
    def connection(self) -> int:
        """Return the number of the connection."""

    @property
    def listener(self) -> str:
        """Return the listener that accepted the connection."""

    @property
    def peer_host(self) -> str:
        """Return the client's address."""

    @property
    def principal(self) -> tuple[str, str] | None:
        """Return the principal's type and name; None before authentication."""


class Handshake(NamedTuple):
    """The response to SaslHandshake."""

    error_code: ErrorCode
    mechanisms: tuple[str, ...] = ()
    fails: bool = False
    """Whether the connection is closed after the response."""


class Authenticated(NamedTuple):
    """The response to SaslAuthenticate."""

    error_code: ErrorCode
    error_message: str | None = None
    token: bytes = b""
    session_lifetime_ms: int = 0
    fails: bool = False
    """Whether the connection is closed after the response."""


class _Session(msgspec.Struct, gc=False):
    """The state of one connection."""

    mechanism: str
    exchange: Exchange | None
    """None between an authentication and the next handshake."""
    proved: Principal | None = None
    """The principal before a re-authentication; None the first time."""
    by_token: bool = False
    """Whether that principal authenticated by a delegation token."""
    bad_mechanism: str | None = None
    """Another mechanism in the handshake of a re-authentication: the next token is rejected."""
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
        """`prove` passes a connection's principal and session lifetime in ms to the data plane, before the response;
        `nonce` returns random texts. Without `tokens` a login by delegation token fails. Without `builder` an
        authenticated name is a `User`.
        """
        self._builder = builder
        self._tokens = tokens
        self._listeners = listeners
        self._scram = scram
        self._prove = prove
        self._nonce = nonce
        self._wall_ms = wall_ms
        # Invariant: a connection is here from its handshake until it is closed, or authenticates without a lifetime.
        self._sessions: dict[int, _Session] = {}
        # Threads are started on demand, and kept for more work.
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="pybroker-sasl")
        self._validators: dict[BearerSettings, Validator] = {}
        self._decoys = {name: Decoys() for name in SCRAM_BY_NAME}

    def __len__(self) -> int:
        """Return the number of connections with a state."""
        return len(self._sessions)

    def reconfigure(self, listeners: Mapping[str, ListenerSasl]) -> None:
        """Apply changed settings to all later handshakes."""
        self._listeners = listeners
        settings = {one.bearer for one in listeners.values()}
        self._validators = {one: kept for one, kept in self._validators.items() if one in settings}

    def forget(self, connection: int) -> None:
        """Remove the state of a closed connection."""
        self._sessions.pop(connection, None)

    def close(self) -> None:
        """Stop the threads without waiting for their work."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def is_by_token(self, connection: int) -> bool:
        """Whether a connection authenticated by a delegation token; its session ends with the token."""
        session = self._sessions.get(connection)
        return session is not None and session.by_token

    def handshake(self, client: Client, mechanism: str, *, bare: bool = False) -> Handshake:
        """Start an exchange, or return the enabled mechanisms; `bare`: its tokens are frames of their own."""
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
            # A client without SASL sends an empty name to detect the security protocol (pybroker.client.mismatches).
            level = logging.WARNING if mechanism else logging.DEBUG
            self._note(client, f"requested SASL mechanism {mechanism[:64]!r}, {client.listener} has {names}", level)
            return Handshake(ErrorCode.UNSUPPORTED_SASL_MECHANISM, offered.mechanisms, fails=True)
        if session is None or session.proved is None:
            session = self._sessions[client.connection] = _Session(mechanism, None)
        else:
            session.began_again_ms = self._wall_ms()
            session.bad_mechanism = None if mechanism == session.mechanism else mechanism
        session.exchange = self._new_exchange(mechanism, offered)
        return Handshake(ErrorCode.NONE, offered.mechanisms)

    def authenticate(self, client: Client, token: bytes) -> Authenticated | Coroutine[None, None, Authenticated]:
        """Process a client's token. Where the mechanism needs a thread, the response must be awaited."""
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
        """Run the step on a thread. The connection sends no token meanwhile, but it may be closed."""
        step = await asyncio.get_running_loop().run_in_executor(self._workers, work.decide)
        if self._sessions.get(client.connection) is not session:
            return Authenticated(ErrorCode.ILLEGAL_SASL_STATE, fails=True)
        return self._decide(client, session, step)

    def _decide(self, client: Client, session: _Session, step: Outcome) -> Authenticated:
        """Respond to the outcome of a client's SASL token: a challenge, an error or success."""
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
        words = "Authenticated %s as %s%s by %s on %s"
        log.info(words, client.peer_host, principal, again, session.mechanism, client.listener)
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
        """Return the validator of a listener's tokens: the same while its settings are equal, as it caches keys."""
        found = self._validators.get(settings)
        if found is None:
            found = self._validators[settings] = Validator(settings, self._wall_ms)
        return found

    def _may_begin_again(self, session: _Session) -> bool:
        began = session.began_again_ms
        return began is None or self._wall_ms() - began >= _REAUTHENTICATION_PAUSE_MS

    def _lifetime_ms(self, client: Client, mechanism: str, expires_ms: int | None) -> int | None:
        """Return the lifetime of a session in ms, None for unlimited."""
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
