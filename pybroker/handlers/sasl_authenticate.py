"""SaslAuthenticate: a token of a client's SASL authentication.

Key
    36

Versions
    0-2

Behaviour
    - The mechanism of SaslHandshake makes the response's token from the request's. After a successful authentication,
      the connection's next requests have the principal.
    - SASL_AUTHENTICATION_FAILED for a failure, with a message that does not reveal whether the user exists. The
      connection is closed after connection.failed.authentication.delay.ms (KIP-306). The user, its address and the
      reason are logged.
    - A client can re-authenticate only with the same mechanism and principal (KIP-368).
    - ILLEGAL_SASL_STATE on a listener without SASL, and on an authenticated connection.

Version notes
    - session_lifetime_ms since version 1: after this time, only a re-authentication is accepted.

Not done
    - An audit trail beyond the log.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.machine.reply import Reply
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from pybroker.security.requirements import NothingRequired

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.security.sasl.server import Authenticated

_TOO_LATE = "SaslAuthenticate request received after successful authentication"


def _failed(_request: SaslAuthenticateRequest, _version: int, error: WireError) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)


@handles(
    SaslAuthenticateRequest,
    requires=NothingRequired("Clients prove by it who they are, so nobody is known before."),
    failed=_failed,
    listeners=ListenerRole.BOTH,
)
def sasl_authenticate(
    request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse | Reply | Coroutine[None, None, SaslAuthenticateResponse]:
    """Process a token of the client."""
    sasl = context.services.sasl
    if sasl is None:
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TOO_LATE)
    outcome = sasl.authenticate(context.origin, request.auth_bytes)
    return _respond_later(outcome, context) if isinstance(outcome, Coroutine) else _respond(outcome, context)


async def _respond_later(
    work: Coroutine[None, None, Authenticated], context: RequestContext
) -> SaslAuthenticateResponse:
    response = _respond(await work, context)
    return await response if isinstance(response, Reply) else response


def _respond(outcome: Authenticated, context: RequestContext) -> SaslAuthenticateResponse | Reply:
    response = SaslAuthenticateResponse(
        error_code=outcome.error_code,
        error_message=outcome.error_message,
        auth_bytes=outcome.token,
        session_lifetime_ms=outcome.session_lifetime_ms,
    )
    return context.end_after(response) if outcome.fails else response
