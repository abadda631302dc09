"""Delegation tokens: their lifetime, authorization to renew or expire them, and the removal of expired tokens.

Owns these rules. Must not know the HMACs of tokens: the caller has found the token by its HMAC. Expiry times are in
milliseconds since 1970, so events contain the time of day beside the machine's own clock.

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
"""Tokens that one decision removes; the next ones are removed by a separate event."""
_SWEEP = "expired delegation tokens"
_ERROR = -1
"""The timestamp in an error response."""


class CreateToken(msgspec.Struct, frozen=True):
    """Create a token. The reply is the `DelegationToken`, or a `Result` with the error."""

    token_id: str
    """Fresh and random."""
    owner: str
    requester: str
    renewers: tuple[str, ...]
    max_lifetime_ms: int
    """0 or less for `max_lifetime_ms` of the settings, which is also the maximum."""
    wall_ms: int


class RenewToken(msgspec.Struct, frozen=True):
    """Renew a token. The reply is a `TokenEnd`."""

    token_id: str
    principal: str
    """The principal that sent the request."""
    period_ms: int
    """From now; 0 or less for `expiry_ms` of the settings, which is also the maximum."""
    wall_ms: int


class ExpireToken(msgspec.Struct, frozen=True):
    """Expire a token. The reply is a `TokenEnd`."""

    token_id: str
    principal: str
    """The principal that sent the request."""
    period_ms: int
    """From now; below 0 the token is removed at once."""
    wall_ms: int


class RemoveEndedTokens(msgspec.Struct, frozen=True):
    """Remove the expired tokens. A timer event of the machine itself."""

    epoch_ms: int
    """Time of day minus the machine's clock, in ms. A clock change while a controller is active has no effect."""


class TokenEnd(msgspec.Struct, frozen=True):
    """The expiry time of a token, or the error."""

    error_code: ErrorCode
    expires_ms: int = _ERROR


def first_sweep(settings: ClusterSettings, now: int, epoch_ms: int) -> list[Timer]:
    """Return the timer of the first token removal of a new active controller."""
    interval = settings.tokens.check_interval_ms
    return [] if interval == NEVER else [Timer(_SWEEP, now + interval, RemoveEndedTokens(epoch_ms))]


def create_token(
    image: MetadataImage, event: CreateToken, settings: ClusterSettings
) -> Outcome[Message, DelegationToken | Result]:
    """Create a token, unless its owner has as many as `delegation.token.max.per.owner` allows."""
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
    """Renew a token, up to its maximum lifetime."""
    known = image.delegation_tokens.by_id.get(event.token_id)
    if known is not None and is_over(known, event.wall_ms):  # checked before authorization, as in Kafka
        return Outcome((), TokenEnd(ErrorCode.DELEGATION_TOKEN_EXPIRED))
    token = _own(image, event)
    if isinstance(token, ErrorCode):
        return Outcome((), TokenEnd(token))
    most = settings.tokens.expiry_ms
    return _until(token, event.wall_ms + (min(most, event.period_ms) if event.period_ms > 0 else most))


def expire_token(image: MetadataImage, event: ExpireToken) -> Outcome[Message, TokenEnd]:
    """Expire a token."""
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
    """Return whether a token has expired."""
    return token.expires_ms < wall_ms or token.ends_ms < wall_ms


def _own(image: MetadataImage, event: RenewToken | ExpireToken) -> DelegationToken | ErrorCode:
    """Return the token, or the error that the requester gets."""
    token = image.delegation_tokens.by_id.get(event.token_id)
    if token is None:
        return ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    if event.principal not in (token.owner, *token.renewers):
        return ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    return token


def _until(token: DelegationToken, expires_ms: int) -> Outcome[Message, TokenEnd]:
    """Set the expiry time of a token, at most the end of its maximum lifetime."""
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
