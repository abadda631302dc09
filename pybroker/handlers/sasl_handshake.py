"""SaslHandshake: the mechanism by which a client is going to authenticate.

Key
    17

Versions
    0-1

Behaviour
    - The answer has all mechanisms of the listener (sasl.enabled.mechanisms). One that it has not is
      UNSUPPORTED_SASL_MECHANISM, and the connection ends after connection.failed.authentication.delay.ms (KIP-306).
    - A second handshake during an exchange is ILLEGAL_SASL_STATE, and ends the connection.
    - On a listener without SASL, and on a connection that has authenticated and need not do so again, it is
      ILLEGAL_SASL_STATE. Where sessions end (connections.max.reauth.ms) it begins a re-authentication (KIP-368), once
      in a second at most.

Version notes
    - After version 0 every frame is a token of the exchange, without a head, and so are the answers, up to the proof; a
      refusal is the end of the connection. A client that has authenticated does not do so again by version 0.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.machine.reply import Reply
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.sasl_handshake import (
    FIRST_VERSION_BEFORE_REQUESTS,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from pybroker.security.requirements import NothingRequired

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(_request: SaslHandshakeRequest, _version: int, error: WireError) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error.code)


@handles(
    SaslHandshakeRequest,
    requires=NothingRequired("Clients begin by it to prove who they are, so nobody is known before."),
    failed=_failed,
    listeners=ListenerRole.BOTH,
)
def sasl_handshake(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse | Reply:
    """Begin an exchange."""
    sasl = context.services.sasl
    if sasl is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    bare = context.version < FIRST_VERSION_BEFORE_REQUESTS
    outcome = sasl.handshake(context.origin, request.mechanism, bare=bare)
    response = SaslHandshakeResponse(error_code=outcome.error_code, mechanisms=list(outcome.mechanisms))
    return context.end_after(response) if outcome.fails else response
