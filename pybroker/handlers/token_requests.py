"""Shared by the delegation token APIs: the check that a client may use them, and the lookup of a token.

Must not know the APIs.

Source: Kafka's KafkaApis.allowTokenRequests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.protocol.errors import ErrorCode
from pybroker.security.principals import ANONYMOUS

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.metadata.image import DelegationToken
    from pybroker.security.delegation_tokens import DelegationTokens

NO_TIME = -1
"""The timestamp in error responses, Kafka's `DelegationTokenManager.ErrorTimestamp`."""


def check_allowed(context: RequestContext) -> None:
    """Raise ApiError for a client that is not authenticated, or is authenticated by a token.

    For a forwarded request, the forwarding broker has checked the listener.
    """
    is_forwarded = context.forwarded_by_token is not None
    protocol = context.services.config.security_protocols.get(context.listener, "PLAINTEXT")
    is_nobody = protocol == "PLAINTEXT" or (protocol == "SSL" and context.principal == ANONYMOUS)
    if context.by_token or (is_nobody and not is_forwarded):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def tokens_of(context: RequestContext) -> DelegationTokens:
    """Return the delegation token service. Raises ApiError if tokens are disabled."""
    tokens = context.services.tokens
    if tokens is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens


def find_token(context: RequestContext, hmac: bytes) -> DelegationToken:
    """Return the delegation token with this HMAC. Raises ApiError if there is none."""
    token = tokens_of(context).find(hmac)
    if token is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token
