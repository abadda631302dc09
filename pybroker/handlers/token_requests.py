"""What the APIs of delegation tokens share: who may ask for them at all, and which token is meant.

Must not know what an API does with a token.

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
"""The time that an error answers, Kafka's `DelegationTokenManager.ErrorTimestamp`."""


def check_allowed(context: RequestContext) -> None:
    """Raise ApiError for a client that has not proved who it is, or did so by a token.

    The listener of a forwarded request was judged by the broker that forwards it.
    """
    is_forwarded = context.forwarded_by_token is not None
    protocol = context.services.config.security_protocols.get(context.listener, "PLAINTEXT")
    is_nobody = protocol == "PLAINTEXT" or (protocol == "SSL" and context.principal == ANONYMOUS)
    if context.by_token or (is_nobody and not is_forwarded):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def tokens_of(context: RequestContext) -> DelegationTokens:
    """Return what checks tokens; raises ApiError where there are none."""
    tokens = context.services.tokens
    if tokens is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens


def find_token(context: RequestContext, hmac: bytes) -> DelegationToken:
    """Return the token of an HMAC; raises ApiError where there is none."""
    token = tokens_of(context).find(hmac)
    if token is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token
