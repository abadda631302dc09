"""SaslHandshake: selects the mechanism of a client's SASL authentication.

Key
    17

Versions
    0-1

Behaviour
    - The response has all mechanisms of the listener (sasl.enabled.mechanisms). UNSUPPORTED_SASL_MECHANISM for any
      other; the connection is then closed after connection.failed.authentication.delay.ms (KIP-306).
    - ILLEGAL_SASL_STATE for a second handshake during an authentication, and the connection is closed.
    - ILLEGAL_SASL_STATE on a listener without SASL, and on an authenticated connection without session expiry. With
      connections.max.reauth.ms, it starts a re-authentication (KIP-368), at most once per second.

Version notes
    - After a handshake of version 0, every frame of both sides is a token without a header until the authentication
      completes. A failure closes the connection. Version 0 cannot re-authenticate.

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
    """Start an authentication."""
    sasl = context.services.sasl
    if sasl is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    bare = context.version < FIRST_VERSION_BEFORE_REQUESTS
    outcome = sasl.handshake(context.origin, request.mechanism, bare=bare)
    response = SaslHandshakeResponse(error_code=outcome.error_code, mechanisms=list(outcome.mechanisms))
    return context.end_after(response) if outcome.fails else response
