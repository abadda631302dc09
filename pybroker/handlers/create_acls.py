"""CreateAcls: creates access control entries.

Key
    30

Versions
    1-3

Behaviour
    - Each entry succeeds or fails independently. An entry that exists already succeeds and changes nothing.
    - INVALID_REQUEST with a message for an invalid entry: an empty name, a cluster name other than kafka-cluster,
      unknown numbers or those reserved for filters.
    - SECURITY_DISABLED for each if the broker has no authorizer.
    - The response is sent when this broker enforces the entries.

Version notes
    - Prefixed patterns: since version 1 (KIP-290), the first that is served.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import Result
from pybroker.handlers.acl_entries import check_authorizer
from pybroker.handlers.registry import handles
from pybroker.metadata.image import AccessControlEntry
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(request: CreateAclsRequest, _version: int, error: WireError) -> CreateAclsResponse:
    words = error.message or error.code.message
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=error.code, error_message=words) for _ in request.creations]
    )


@handles(
    CreateAclsRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def create_acls(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Pass the request to the controller, and wait until its changes are applied here."""
    check_authorizer(context)
    services = context.services
    faults = {place: words for place, one in enumerate(request.creations) if (words := _fault(one)) is not None}
    entries = [_entry(one) for place, one in enumerate(request.creations) if place not in faults]
    made = iter(await services.controller.own().create_acls(entries) if entries else ())
    await services.publisher.published(services.image().offset)
    results = [
        Result(ErrorCode.INVALID_REQUEST, faults[place]) if place in faults else next(made)
        for place in range(len(request.creations))
    ]
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=result.error_code, error_message=result.error_message or None)
            for result in results
        ]
    )


def _fault(creation: AclCreation) -> str | None:
    """Return Kafka's message for an entry that AclApis rejects before it calls the controller, else None."""
    if creation.resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    return None if creation.resource_name else "Invalid empty resource name"


def _entry(creation: AclCreation) -> AccessControlEntry:
    return AccessControlEntry(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )
