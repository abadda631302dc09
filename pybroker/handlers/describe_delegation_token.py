"""DescribeDelegationToken: returns the tokens that a client may describe, with their HMACs (KIP-48).

Key
    41

Versions
    1-3

Behaviour
    - A client may describe tokens of which it is owner, requester or renewer, those whose id it may DESCRIBE, and those
      of owners on which it has DESCRIBE_TOKENS (KIP-373). The others are omitted.
    - With owners in the request, only tokens of which one of them is owner, requester or renewer. An empty list matches
      none.
    - DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and DELEGATION_TOKEN_AUTH_DISABLED as for CreateDelegationToken.
    - Expired tokens are included until the controller removes them (delegation.token.expiry.check.interval.ms).

Version notes
    - The requester of a token: since version 3.

Not done
    - Throttling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.authorizing import may
from pybroker.handlers.registry import handles
from pybroker.handlers.token_requests import check_allowed, tokens_of
from pybroker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_response

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.image import DelegationToken
    from pybroker.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner
    from pybroker.security.delegation_tokens import DelegationTokens


def _failed(
    _request: DescribeDelegationTokenRequest, _version: int, error: WireError
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=error.code)


@handles(
    DescribeDelegationTokenRequest,
    requires=[
        of_response(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN),
        of_response(Operation.DESCRIBE_TOKENS, ResourceType.USER),
    ],
    failed=_failed,
)
def describe_delegation_token(request: DescribeDelegationTokenRequest, context: BrokerContext) -> Reply:
    """Return the matching tokens of the image."""
    check_allowed(context)
    tokens = tokens_of(context)
    return context.services.slices.run(_describe(request.owners, tokens, context))


def _describe(
    requested: list[DescribeDelegationTokenOwner] | None, tokens: DelegationTokens, context: BrokerContext
) -> Sliced[DescribeDelegationTokenResponse]:
    owners = set()
    for one in requested or ():
        owners.add(f"{one.principal_type}:{one.principal_name}")
        yield
    described = []
    for token in context.image.delegation_tokens.by_id.values() if requested is None or owners else ():
        yield
        if (requested is None or not owners.isdisjoint(_parties(token))) and _may_know(token, context):
            described.append(_described(token, tokens))
    return DescribeDelegationTokenResponse(tokens=described)


def _parties(token: DelegationToken) -> tuple[str, ...]:
    return token.owner, token.requester, *token.renewers


def _may_know(token: DelegationToken, context: BrokerContext) -> bool:
    return (
        str(context.principal) in _parties(token)
        or may(context, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, is_requested=False)
        or may(context, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner, is_requested=False)
    )


def _described(token: DelegationToken, tokens: DelegationTokens) -> DescribedDelegationToken:
    owner_kind, _, owner = token.owner.partition(":")
    requester_kind, _, requester = token.requester.partition(":")
    renewers = [one.partition(":") for one in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner_kind,
        principal_name=owner,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.ends_ms,
        token_id=token.token_id,
        hmac=tokens.hmac(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name) for kind, _, name in renewers
        ],
    )
