"""Delegation tokens: how long each lives, who may prolong or end it, and that those which have ended go.

Owns these rules. Must not know the secret that tokens are proved by: who asks has found the token that is meant. When a
token ends is said in milliseconds since 1970, so events bring the time of day beside the machine's own.

Source: Kafka's DelegationTokenControlManager (KIP-48, KIP-373, KIP-900).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.cluster.events import Result
from pybroker.controller.cluster.settings import NEVER
from pybroker.machine.machine import Outcome, Timer
from pybroker.metadata.image import DelegationToken
from pybroker.metadata.image_records import token_record
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.remove_delegation_token import RemoveDelegationTokenRecord

if TYPE_CHECKING:
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

MAX_REMOVALS = 1000
"""Tokens that one decision removes; the next part comes in a turn of its own."""
_SWEEP = "expired delegation tokens"
_ERROR = -1
"""The time that an error answers."""


class CreateToken(msgspec.Struct, frozen=True):
    """Make a token. Answered by the `DelegationToken`, or by a `Result` with the reason why there is none."""

    token_id: str
    """Fresh and random."""
    owner: str
    requester: str
    renewers: tuple[str, ...]
    max_lifetime_ms: int
    """0 or less for what the settings say, which is also the most."""
    wall_ms: int


class RenewToken(msgspec.Struct, frozen=True):
    """Have a token live longer. Answered by `TokenEnd`."""

    token_id: str
    principal: str
    """Who asks."""
    period_ms: int
    """From now; 0 or less for what the settings say, which is also the most."""
    wall_ms: int


class ExpireToken(msgspec.Struct, frozen=True):
    """Have a token end. Answered by `TokenEnd`."""

    token_id: str
    principal: str
    """Who asks."""
    period_ms: int
    """From now; below 0 the token goes at once."""
    wall_ms: int


class RemoveEndedTokens(msgspec.Struct, frozen=True):
    """Remove the tokens that have ended. It is the machine's own."""

    epoch_ms: int
    """What the machine's clock lacks to the time of day. A clock that is set while a controller leads is not seen."""


class TokenEnd(msgspec.Struct, frozen=True):
    """When a token ends, or why nothing was changed."""

    error_code: ErrorCode
    expires_ms: int = _ERROR


def first_sweep(settings: ClusterSettings, now: int, epoch_ms: int) -> list[Timer]:
    """Return the timer with which a new leader of the quorum begins to remove tokens."""
    interval = settings.tokens.check_interval_ms
    return [] if interval == NEVER else [Timer(_SWEEP, now + interval, RemoveEndedTokens(epoch_ms))]


def create_token(
    image: MetadataImage, event: CreateToken, settings: ClusterSettings
) -> Outcome[Message, DelegationToken | Result]:
    """Make a token, unless its owner has as many as `delegation.token.max.per.owner` allows."""
    owned, limit = image.delegation_tokens.owned.get(event.owner, 0), settings.tokens.max_per_owner
    if limit is not None and owned >= limit:
        words = (
            f"{event.owner} has {owned} delegation tokens (delegation.token.max.per.owner={limit}): "
            "expire one, or raise the limit on the controllers"
        )
        return Outcome((), Result(ErrorCode.POLICY_VIOLATION, words))
    most = settings.tokens.max_lifetime_ms
    lifetime = min(most, event.max_lifetime_ms) if event.max_lifetime_ms > 0 else most
    ends = event.wall_ms + lifetime
    token = DelegationToken(
        token_id=event.token_id,
        owner=event.owner,
        requester=event.requester,
        renewers=event.renewers,
        issued_ms=event.wall_ms,
        expires_ms=min(ends, event.wall_ms + settings.tokens.expiry_ms),
        ends_ms=ends,
    )
    return Outcome((token_record(token),), token)


def renew_token(image: MetadataImage, event: RenewToken, settings: ClusterSettings) -> Outcome[Message, TokenEnd]:
    """Have a token live longer, within its longest life."""
    known = image.delegation_tokens.by_id.get(event.token_id)
    if known is not None and is_over(known, event.wall_ms):  # asked before who may do it, as in Kafka
        return Outcome((), TokenEnd(ErrorCode.DELEGATION_TOKEN_EXPIRED))
    token = _own(image, event)
    if isinstance(token, ErrorCode):
        return Outcome((), TokenEnd(token))
    most = settings.tokens.expiry_ms
    return _until(token, event.wall_ms + (min(most, event.period_ms) if event.period_ms > 0 else most))


def expire_token(image: MetadataImage, event: ExpireToken) -> Outcome[Message, TokenEnd]:
    """Have a token end."""
    token = _own(image, event)
    if isinstance(token, ErrorCode):
        return Outcome((), TokenEnd(token))
    if event.period_ms < 0:
        removal = RemoveDelegationTokenRecord(token_id=token.token_id)
        return Outcome((removal,), TokenEnd(ErrorCode.NONE, event.wall_ms))
    if is_over(token, event.wall_ms):
        return Outcome((), TokenEnd(ErrorCode.DELEGATION_TOKEN_EXPIRED))
    return _until(token, event.wall_ms + event.period_ms)


def remove_ended_tokens(
    image: MetadataImage, event: RemoveEndedTokens, settings: ClusterSettings, now: int
) -> Outcome[Message, None]:
    """Remove the expired tokens, and check again after `delegation.token.expiry.check.interval.ms`."""
    tokens, wall_ms = image.delegation_tokens.by_id.values(), now + event.epoch_ms
    ended = list(islice((token.token_id for token in tokens if is_over(token, wall_ms)), MAX_REMOVALS + 1))
    records = tuple(RemoveDelegationTokenRecord(token_id=token_id) for token_id in ended[:MAX_REMOVALS])
    wait = 0 if len(ended) > MAX_REMOVALS else settings.tokens.check_interval_ms
    return Outcome(records, None, (Timer(_SWEEP, now + wait, event),))


def is_over(token: DelegationToken, wall_ms: int) -> bool:
    """Whether a token has ended."""
    return token.expires_ms < wall_ms or token.ends_ms < wall_ms


def _own(image: MetadataImage, event: RenewToken | ExpireToken) -> DelegationToken | ErrorCode:
    """Return the token, or why who asks may not change it."""
    token = image.delegation_tokens.by_id.get(event.token_id)
    if token is None:
        return ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    if event.principal not in (token.owner, *token.renewers):
        return ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    return token


def _until(token: DelegationToken, expires_ms: int) -> Outcome[Message, TokenEnd]:
    """Have a token end at a time, or at its longest life's end before that."""
    changed = DelegationToken(
        token_id=token.token_id,
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issued_ms=token.issued_ms,
        expires_ms=min(token.ends_ms, expires_ms),
        ends_ms=token.ends_ms,
    )
    return Outcome((token_record(changed),), TokenEnd(ErrorCode.NONE, changed.expires_ms))
