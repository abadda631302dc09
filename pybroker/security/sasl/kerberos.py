"""GSSAPI: a client authenticates with a Kerberos ticket (RFC 4752, Kerberos only).

Owns the messages around the security context: the context itself, the offer of security layers, which are none, and
the client's choice. Must not know the library of the context, which may read files: its calls run on a thread.

The ticket identifies the client. The authorization id, by which it could act for another user, is ignored, as in
Kafka: clients send their principal there, or the service (kafka-python), or a name without a realm.

Source: RFC 4752, 3.2; Java's GssKrb5Server, Kafka's SaslServerCallbackHandler.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from pybroker.security.kerberos_names import NoLocalNameError, local_name
from pybroker.security.sasl.steps import Challenge, Proved, Refused, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pybroker.config.security.kerberos import LocalRule
    from pybroker.security.sasl.steps import Outcome, Step

_NO_LAYER = 1
"""The bit of RFC 4752 for no security layer: later bytes are sent unprotected."""
_OFFER = bytes((_NO_LAYER, 0, 0, 0))
"""No other layer, so the maximum message size of a layer is 0."""
_CHOICE_BYTES = 4
"""The layer and the maximum size; an authorization id follows."""
_MOST_TOKENS = 8
"""Maximum tokens of the client until the context is established; Kerberos needs one or two."""


class ContextError(Exception):
    """A security context rejects a token, or cannot be created. The message is for the broker's log."""


class Context(Protocol):
    """The accepting side of one security context. Every call may raise ContextError, and must run on a thread."""

    def accept(self, token: bytes) -> bytes:
        """Process a token of the client. Returns the token for the client, which may be empty."""

    @property
    def stands(self) -> bool:
        """Whether the context is established."""

    @property
    def initiator(self) -> str:
        """Return the client's principal, with its realm."""

    @property
    def realm(self) -> str:
        """Return the realm of the broker's own principal."""

    def wrap(self, message: bytes) -> bytes:
        """Sign a message for the client."""

    def unwrap(self, token: bytes) -> bytes:
        """Verify a message of the client, and return its content."""


class GssapiExchange:
    """Tokens of the context, an empty one if the broker sent the last token, and the choice of a layer."""

    def __init__(self, open_context: Callable[[], Context], rules: Iterable[LocalRule]) -> None:
        """`open_context` creates the context when the first token arrives; it may raise ContextError."""
        self._open = open_context
        self._rules = tuple(rules)
        self._context: Context | None = None
        self._taken = 0
        # Invariant: the offer is sent only after the context is established.
        self._offered = False

    def step(self, token: bytes) -> Step:
        """Process the client's next token."""
        return Work(partial(self._decide, token))

    def _decide(self, token: bytes) -> Outcome:
        try:
            if self._offered:
                return self._choose(token)
            if self._context is not None and self._context.stands:
                return self._offer(self._context) if not token else Refused("a token after the context's end")
            return self._accept(token)
        except ContextError as error:
            return Refused(str(error))

    def _accept(self, token: bytes) -> Outcome:
        self._taken += 1
        if self._taken > _MOST_TOKENS:
            return Refused(f"the context is not established after {_MOST_TOKENS} tokens")
        if self._context is None:
            self._context = self._open()
        response = self._context.accept(token)
        if self._context.stands and not response:
            return self._offer(self._context)
        return Challenge(response)

    def _offer(self, context: Context) -> Outcome:
        offer = context.wrap(_OFFER)
        self._offered = True
        return Challenge(offer)

    def _choose(self, token: bytes) -> Outcome:
        assert self._context is not None
        context = self._context
        choice = context.unwrap(token)
        if len(choice) < _CHOICE_BYTES:
            return Refused(f"the choice of a security layer has {len(choice)} bytes, not {_CHOICE_BYTES} or more")
        if choice[0] != _NO_LAYER:
            return Refused(f"the client chose security layer {choice[0]}, but none is offered")
        try:
            return Proved(local_name(context.initiator, self._rules, context.realm))
        except NoLocalNameError as error:
            return Refused(str(error))
