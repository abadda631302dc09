"""RenewDelegationToken: a delegation token lives longer (KIP-48).

Key
    39

Versions
    1-2

Behaviour
    - It ends after the time that was asked for, delegation.token.expiry.time.ms at most, and never after its longest
      life.
    - Its owner and its renewers may do so: others get DELEGATION_TOKEN_OWNER_MISMATCH. DELEGATION_TOKEN_NOT_FOUND for
      an HMAC that is none of a token, DELEGATION_TOKEN_EXPIRED for a token that has ended.
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
from pybroker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from pybroker.security.requirements import NothingRequired

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(_request: RenewDelegationTokenRequest, _version: int, error: WireError) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)


def _judge_here(_request: RenewDelegationTokenRequest, context: RequestContext) -> None:
    check_allowed(context)


@handles(
    RenewDelegationTokenRequest,
    requires=NothingRequired("A token says itself who may renew it: its owner and its renewers."),
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
    judge_here=_judge_here,
)
async def renew_delegation_token(
    request: RenewDelegationTokenRequest, context: RequestContext
) -> RenewDelegationTokenResponse:
    """Have the controller decide, and wait until this broker knows."""
    check_allowed(context)
    token, services = find_token(context, request.hmac), context.services
    end = await services.controller.own().renew_token(
        token.token_id, str(context.principal), request.renew_period_ms, tokens_of(context).wall_ms()
    )
    await services.publisher.published(services.image().offset)
    return RenewDelegationTokenResponse(error_code=end.error_code, expiry_timestamp_ms=end.expires_ms)
