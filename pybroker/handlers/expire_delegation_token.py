"""ExpireDelegationToken: changes the expiry of a delegation token, or removes the token (KIP-48).

Key
    40

Versions
    1-2

Behaviour
    - A negative period removes the token. Any other one starts now, and is limited by the token's maximum lifetime. New
      logins are rejected after the expiry. Open connections last until the expiry that the token had at their login.
    - DELEGATION_TOKEN_OWNER_MISMATCH unless the client is the owner or a renewer. DELEGATION_TOKEN_NOT_FOUND for an
      unknown HMAC, DELEGATION_TOKEN_EXPIRED for an expired token, unless it is removed.
    - DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and DELEGATION_TOKEN_AUTH_DISABLED as for CreateDelegationToken.

Version notes
    - None.

Not done
    - Throttling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.handlers.token_requests import NO_TIME, check_allowed, find_token, tokens_of
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from pybroker.security.requirements import NothingRequired

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(_request: ExpireDelegationTokenRequest, _version: int, error: WireError) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)


def _authorize_here(_request: ExpireDelegationTokenRequest, context: RequestContext) -> None:
    check_allowed(context)


@handles(
    ExpireDelegationTokenRequest,
    requires=NothingRequired("A token says itself who may end it: its owner and its renewers."),
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
    authorize_here=_authorize_here,
)
async def expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse:
    """Pass the request to the controller, and wait until its changes are applied here."""
    check_allowed(context)
    token, services = find_token(context, request.hmac), context.services
    end = await services.controller.own().expire_token(
        token.token_id, str(context.principal), request.expiry_time_period_ms, tokens_of(context).wall_ms()
    )
    await services.publisher.published(services.image().offset)
    return ExpireDelegationTokenResponse(error_code=end.error_code, expiry_timestamp_ms=end.expires_ms)
