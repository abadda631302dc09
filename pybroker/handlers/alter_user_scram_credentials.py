"""AlterUserScramCredentials: adds, changes and deletes SCRAM credentials of users (KIP-554).

Key
    51

Versions
    0-0

Behaviour
    - Each user succeeds or fails independently. A user that occurs twice, also with two mechanisms, is rejected with
      DUPLICATE_RESOURCE.
    - 4096 to 16384 iterations are accepted; others, and an empty user name, are rejected with UNACCEPTABLE_CREDENTIAL.
    - The metadata log stores only the keys that verify a password. The client sends a hash of the password, which is
      not stored.
    - The response is sent when this broker accepts the credential.

Version notes
    - None.

Not done
    - Throttling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import ScramDeletion, ScramUpsertion
from pybroker.handlers.registry import handles
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(
    request: AlterUserScramCredentialsRequest, _version: int, error: WireError
) -> AlterUserScramCredentialsResponse:
    names = dict.fromkeys([*(one.name for one in request.deletions), *(one.name for one in request.upsertions)])
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.message)
            for name in names
        ]
    )


@handles(
    AlterUserScramCredentialsRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """Pass the request to the controller, and wait until its changes are applied here."""
    services = context.services
    altered = await services.controller.own().alter_scram_users(
        [ScramDeletion(one.name, one.mechanism) for one in request.deletions],
        [
            ScramUpsertion(one.name, one.mechanism, one.iterations, one.salt, one.salted_password)
            for one in request.upsertions
        ],
    )
    await services.publisher.published(services.image().offset)
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=one.name, error_code=one.error_code, error_message=one.error_message)
            for one in altered
        ]
    )
