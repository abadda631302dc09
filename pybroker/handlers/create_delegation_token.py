"""CreateDelegationToken: creates a delegation token, a temporary credential of a user (KIP-48).

Key
    38

Versions
    1-3

Behaviour
    - The token's id is a SCRAM user name, and its HMAC in base64 the password, for clients with `tokenauth=true`.
    - It expires after delegation.token.expiry.time.ms unless it is renewed, and finally after the requested lifetime,
      at most delegation.token.max.lifetime.ms.
    - DELEGATION_TOKEN_REQUEST_NOT_ALLOWED on PLAINTEXT listeners, for clients without a certificate on SSL ones, and
      for clients that authenticated by a token; DELEGATION_TOKEN_AUTH_DISABLED without delegation.token.secret.key.
    - DELEGATION_TOKEN_AUTHORIZATION_FAILED for an owner other than the requester, without CREATE_TOKENS on that user.
    - INVALID_PRINCIPAL_TYPE for renewers and owners that are not of the type User.
    - POLICY_VIOLATION for an owner that has delegation.token.max.per.owner tokens, a limit that Kafka does not have.
      The response has no field for a message, so it is logged.
    - The response is sent when this broker accepts the token.

Version notes
    - An owner other than the requester: since version 3 (KIP-373).

Not done
    - Throttling.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import Result
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import ApiError, denial
from pybroker.handlers.registry import handles
from pybroker.handlers.token_requests import NO_TIME, check_allowed, tokens_of
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.principals import Principal
from pybroker.security.requirements import of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError

log = logging.getLogger("pybroker.handlers")

_USER = "User"


def _failed(request: CreateDelegationTokenRequest, _version: int, error: WireError) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=request.owner_principal_type or "",
        principal_name=request.owner_principal_name or "",
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )


def _authorize_here(_request: CreateDelegationTokenRequest, context: RequestContext) -> None:
    check_allowed(context)


@handles(
    CreateDelegationTokenRequest,
    requires=[
        of_request(
            Operation.CREATE_TOKENS,
            ResourceType.USER,
            select(CreateDelegationTokenRequest.owner_principal_name),
            when="the token is for another user than who asks",
        )
    ],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
    authorize_here=_authorize_here,
)
async def create_delegation_token(
    request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse:
    """Pass the request to the controller, and wait until the token is applied here."""
    check_allowed(context)
    requester = context.principal
    owner = Principal(request.owner_principal_type or "", request.owner_principal_name or "")
    owner = owner if owner.name else requester
    if owner != requester and not may(context, Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        raise denial(ResourceType.USER)
    renewers = [Principal(one.principal_type, one.principal_name) for one in request.renewers]
    if any(one.kind != _USER for one in (owner, *renewers)):
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    tokens, services = tokens_of(context), context.services
    token = await services.controller.own().create_token(
        str(owner), str(requester), [str(one) for one in renewers], request.max_lifetime_ms, tokens.wall_ms()
    )
    if isinstance(token, Result):
        log.warning(
            "Rejecting a delegation token for %s with %s: %s", owner, token.error_code.name, token.error_message
        )
        raise ApiError(token.error_code, token.error_message)
    await services.publisher.published(services.image().offset)
    return CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.ends_ms,
        token_id=token.token_id,
        hmac=tokens.hmac(token.token_id),
    )
