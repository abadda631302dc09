"""Admin's calls that create, renew, expire and describe delegation tokens (KIP-48). `AsyncAdmin` inherits them.

A client authenticates by a token as by SCRAM: `sasl.mechanism` SCRAM-SHA-256 or SCRAM-SHA-512, and a JAAS config
with the token's id as `username`, its HMAC in base64 as `password`, and `tokenauth="true"`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from msgspec import Struct

from pybroker.client.errors import ClientError
from pybroker.client.network.cluster import ANY, Cluster, raise_refused, retried
from pybroker.protocol.messages import create_delegation_token as create
from pybroker.protocol.messages import describe_delegation_token as describe
from pybroker.protocol.messages import expire_delegation_token as expire
from pybroker.protocol.messages import renew_delegation_token as renew

LONGEST = -1
"""The longest lifetime that the broker allows."""
AT_ONCE = -1
"""The period that expires a token at once."""


class Token(Struct, frozen=True):
    """A delegation token. Principals are texts: `User:alice`; times are milliseconds since 1970."""

    token_id: str
    hmac: bytes
    owner: str
    requester: str
    """The principal that requested it; empty where the broker does not return it (before Kafka 3.3)."""
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    """Expiry time, unless it is renewed before."""
    ends_ms: int
    """The latest time to which it can be renewed."""

    @property
    def password(self) -> str:
        """Return the password of the SCRAM login, in which the token's id is the user."""
        return b64encode(self.hmac).decode()

    def __repr__(self) -> str:
        return f"Token({self.token_id!r}, [hidden], owner={self.owner!r})"


class TokenCalls:
    """The calls about delegation tokens."""

    cluster: Cluster

    async def create_token(
        self, *, renewers: Sequence[str] = (), max_lifetime_ms: int = LONGEST, owner: str | None = None
    ) -> Token:
        """Create a token for `owner`, or for the requester. Raises BrokerError.

        The request is not retried. If its response is lost, an unknown token remains until it expires.
        """
        kind, name = ("", "") if owner is None else _parse(owner)
        request = create.CreateDelegationTokenRequest(
            owner_principal_type=kind or None,
            owner_principal_name=name or None,
            renewers=[
                create.CreatableRenewers(principal_type=kind, principal_name=name)
                for kind, name in map(_parse, renewers)
            ],
            max_lifetime_ms=max_lifetime_ms,
        )
        async with self.cluster.node(ANY) as connection:
            made = await connection.query(request, create.CreateDelegationTokenResponse)
            raise_refused(connection.server, [("the delegation token", made.error_code, None)])
        requester = made.token_requester_principal_name
        return Token(
            made.token_id,
            bytes(made.hmac),
            f"{made.principal_type}:{made.principal_name}",
            f"{made.token_requester_principal_type}:{requester}" if requester else "",
            tuple(renewers),
            made.issue_timestamp_ms,
            made.expiry_timestamp_ms,
            made.max_timestamp_ms,
        )

    @retried
    async def renew_token(self, hmac: bytes, period_ms: int = LONGEST) -> int:
        """Renew a token for `period_ms` from now. Returns its expiry time, ms since 1970. Raises BrokerError."""
        request = renew.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(request, renew.RenewDelegationTokenResponse)
            raise_refused(connection.server, [("the delegation token", response.error_code, None)])
        return response.expiry_timestamp_ms

    @retried
    async def expire_token(self, hmac: bytes, period_ms: int = AT_ONCE) -> int:
        """Expire a token `period_ms` from now, below 0 at once. Returns its expiry time, ms since 1970."""
        request = expire.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(request, expire.ExpireDelegationTokenResponse)
            raise_refused(connection.server, [("the delegation token", response.error_code, None)])
        return response.expiry_timestamp_ms

    @retried
    async def describe_tokens(self, owners: Sequence[str] | None = None) -> list[Token]:
        """Return the tokens of these owners, or of all with None, that the client may describe. Raises BrokerError."""
        request = describe.DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [
                describe.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
                for kind, name in map(_parse, owners)
            ]
        )
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(request, describe.DescribeDelegationTokenResponse)
            raise_refused(connection.server, [("the delegation tokens", response.error_code, None)])
        return [
            Token(
                one.token_id,
                bytes(one.hmac),
                f"{one.principal_type}:{one.principal_name}",
                f"{one.token_requester_principal_type}:{one.token_requester_principal_name}"
                if one.token_requester_principal_name
                else "",
                tuple(f"{who.principal_type}:{who.principal_name}" for who in one.renewers),
                one.issue_timestamp,
                one.expiry_timestamp,
                one.max_timestamp,
            )
            for one in response.tokens
        ]


def _parse(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    if not kind or not name:
        words = f"expected a string in format principalType:principalName but got {principal}"
        raise ClientError(words)
    return kind, name
