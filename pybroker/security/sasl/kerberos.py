"""GSSAPI: a client shows by a ticket of its realm who it is (RFC 4752, by Kerberos alone).

Owns the messages around the security context: the context itself, the offer of security layers, of which there is none,
and the client's choice. Must not know the library that has the context, which may read files: what it does is work for
a thread.

A client is whom its ticket names. The authorization id, by which it could ask to be somebody else, says nothing, as in
Kafka: clients send their principal there, or the service that they speak to (kafka-python), or a name without a realm.

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
"""The bit of RFC 4752 that says: what follows is sent as it is."""
_OFFER = bytes((_NO_LAYER, 0, 0, 0))
"""No other layer, and so no largest size of what is sent by one."""
_CHOICE_BYTES = 4
"""The layer and the largest size; an authorization id is behind them."""
_MOST_TOKENS = 8
"""Of the client, until the context stands; Kerberos takes one, or two."""


class ContextError(Exception):
    """A security context refuses a token, or cannot be had; the text is for the broker's log."""


class Context(Protocol):
    """The accepting side of one security context. Every call may raise ContextError, and takes a thread's time."""

    def accept(self, token: bytes) -> bytes:
        """Take a token of the client's; returns what is for the client, which may be nothing."""

    @property
    def stands(self) -> bool:
        """Whether both sides know each other."""

    @property
    def initiator(self) -> str:
        """The client's principal, with its realm."""

    @property
    def realm(self) -> str:
        """The realm of the broker's own principal."""

    def wrap(self, message: bytes) -> bytes:
        """Sign a message for the client."""

    def unwrap(self, token: bytes) -> bytes:
        """Return what the client has signed."""


class GssapiExchange:
    """Tokens of the context, an empty one where the last was the broker's, and the choice of a layer."""

    def __init__(self, open_context: Callable[[], Context], rules: Iterable[LocalRule]) -> None:
        """`open_context` makes the context when the first token is there; it may raise ContextError."""
        self._open = open_context
        self._rules = tuple(rules)
        self._context: Context | None = None
        self._taken = 0
        # Invariant: the offer has been sent only when the context stands.
        self._offered = False

    def step(self, token: bytes) -> Step:
        """Take the client's next token."""
        return Work(partial(self._decide, token))

    def _decide(self, token: bytes) -> Outcome:
        try:
            if self._offered:
                return self._choose(token)
            if self._context is not None and self._context.stands:
                return self._offer(self._context) if not token else Refused("a token follows a context that stands")
            return self._accept(token)
        except ContextError as error:
            return Refused(str(error))

    def _accept(self, token: bytes) -> Outcome:
        self._taken += 1
        if self._taken > _MOST_TOKENS:
            return Refused(f"no context stands after {_MOST_TOKENS} tokens")
        if self._context is None:
            self._context = self._open()
        answer = self._context.accept(token)
        if self._context.stands and not answer:
            return self._offer(self._context)
        return Challenge(answer)

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
            return Refused(f"the client chooses the security layer {choice[0]}, and none is offered")
        try:
            return Proved(local_name(context.initiator, self._rules, context.realm))
        except NoLocalNameError as error:
            return Refused(str(error))
