"""DescribeUserScramCredentials: returns the SCRAM mechanisms of users (KIP-554).

Key
    50

Versions
    0-0

Behaviour
    - The response has the mechanisms and iterations of each user, but no salts or keys.
    - Without users in the request, all are described. RESOURCE_NOT_FOUND for an unknown user, DUPLICATE_RESOURCE for a
      user that occurs twice.

Version notes
    - None.

Not done
    - Throttling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.protocol.errors import LONGEST_MESSAGE, ErrorCode
from pybroker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.image import ScramImage


def _failed(
    _request: DescribeUserScramCredentialsRequest, _version: int, error: WireError
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.message)


@handles(
    DescribeUserScramCredentialsRequest,
    requires=[of_request(Operation.DESCRIBE, ResourceType.CLUSTER)],
    failed=_failed,
)
def describe_user_scram_credentials(request: DescribeUserScramCredentialsRequest, context: BrokerContext) -> Reply:
    """Return the credentials of the image."""
    return context.services.slices.run(_build_response(request, context.image.scram))


def _build_response(
    request: DescribeUserScramCredentialsRequest, scram: ScramImage
) -> Sliced[DescribeUserScramCredentialsResponse]:
    times: dict[str, int] = {}
    for requested in request.users or ():
        times[requested.name] = times.get(requested.name, 0) + 1
    names = times or dict.fromkeys(name for users in scram.by_mechanism.values() for name in users)
    results = []
    for name in names:
        results.append(_result(name, scram, is_twice=times.get(name, 1) > 1))
        yield
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def _result(name: str, scram: ScramImage, *, is_twice: bool) -> DescribeUserScramCredentialsResult:
    if is_twice:
        words = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=words[:LONGEST_MESSAGE]
        )
    infos = [
        CredentialInfo(mechanism=mechanism, iterations=users[name].iterations)
        for mechanism, users in scram.by_mechanism.items()
        if name in users
    ]
    if not infos:
        words = f"Attempt to describe a user credential that does not exist: {name}"
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=words[:LONGEST_MESSAGE]
        )
    return DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=infos)
