"""Admin's calls about SCRAM credentials of users (KIP-554). `AsyncAdmin` inherits them.

The client sends the salted hash of a password, never the password itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from msgspec import Struct

from pybroker.client.errors import ClientError
from pybroker.client.network.cluster import ANY, Cluster, raise_refused, retried
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import alter_user_scram_credentials as alter
from pybroker.protocol.messages import describe_user_scram_credentials as describe
from pybroker.security.scram import salted_password
from pybroker.security.scram_mechanisms import LEAST_ITERATIONS, SCRAM_BY_NAME, SCRAM_BY_NUMBER

_SALT_CHARACTERS = 26
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramPassword(Struct, frozen=True):
    """A new SCRAM password of a user, for one mechanism."""

    mechanism: str
    """SCRAM-SHA-256 or SCRAM-SHA-512."""
    password: str
    iterations: int = LEAST_ITERATIONS

    def __repr__(self) -> str:
        return f"ScramPassword({self.mechanism!r}, [hidden], {self.iterations})"


class UserCalls:
    """The calls about users."""

    cluster: Cluster

    @retried
    async def describe_scram_users(self, users: Sequence[str] | None = None) -> dict[str, dict[str, int]]:
        """Return the iterations of each user by mechanism, with None of all users. Unknown users are omitted."""
        request = describe.DescribeUserScramCredentialsRequest(
            users=None if users is None else [describe.UserName(name=name) for name in users]
        )
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(request, describe.DescribeUserScramCredentialsResponse)
            raise_refused(connection.server, [("SCRAM users", response.error_code, response.error_message)])
            there = [result for result in response.results if result.error_code != ErrorCode.RESOURCE_NOT_FOUND]
            raise_refused(
                connection.server, [(f"user {one.user!r}", one.error_code, one.error_message) for one in there]
            )
        return {
            result.user: {
                SCRAM_BY_NUMBER[info.mechanism].name: info.iterations
                for info in result.credential_infos
                if info.mechanism in SCRAM_BY_NUMBER
            }
            for result in there
        }

    async def alter_scram_user(
        self, user: str, *, give: ScramPassword | None = None, take_away: str | None = None
    ) -> None:
        """Set a user's password for one mechanism, or delete the credential of the mechanism `take_away`."""
        for name in [] if take_away is None else [take_away]:
            if name not in SCRAM_BY_NAME:
                raise ClientError(f"{name}: expected one of {', '.join(SCRAM_BY_NAME)}")
        upsertions = [] if give is None else [await asyncio.to_thread(_upsertion, user, give)]
        deletions = (
            []
            if take_away is None
            else [alter.ScramCredentialDeletion(name=user, mechanism=SCRAM_BY_NAME[take_away].number)]
        )
        await self._alter_scram_users(
            alter.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
        )

    @retried
    async def _alter_scram_users(self, request: alter.AlterUserScramCredentialsRequest) -> None:
        async with self.cluster.controller() as connection:
            response = await connection.query(request, alter.AlterUserScramCredentialsResponse)
            raise_refused(
                connection.server,
                [(f"user {one.user!r}", one.error_code, one.error_message) for one in response.results],
            )


def _upsertion(user: str, given: ScramPassword) -> alter.ScramCredentialUpsertion:
    mechanism = SCRAM_BY_NAME.get(given.mechanism)
    if mechanism is None:
        raise ClientError(f"{given.mechanism}: expected one of {', '.join(SCRAM_BY_NAME)}")
    salt = fresh_salt()
    return alter.ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism.number,
        iterations=given.iterations,
        salt=salt,
        salted_password=salted_password(mechanism, given.password, salt, given.iterations),
    )


def fresh_salt() -> bytes:
    """Return a salt of random letters and digits, like that of Kafka's tools."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_SALT_CHARACTERS)).encode()
