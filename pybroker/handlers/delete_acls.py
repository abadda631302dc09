"""DeleteAcls: deletes the access control entries that filters match.

Key
    31

Versions
    1-3

Behaviour
    - The result of each filter has the entries that it matched. An entry that several filters match is in each result.
    - INVALID_REQUEST for a filter with an unknown number.
    - SECURITY_DISABLED for each if the broker has no authorizer.
    - The response is sent when this broker does not enforce the entries any more.

Version notes
    - Prefixed patterns: since version 1 (KIP-290), the first that is served.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.acl_entries import check_authorizer, read_filter
from pybroker.handlers.registry import handles
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.controller.cluster.acls import DeletedAcls
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(request: DeleteAclsRequest, _version: int, error: WireError) -> DeleteAclsResponse:
    words = error.message or error.code.message
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error_code=error.code, error_message=words) for _ in request.filters]
    )


@handles(
    DeleteAclsRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def delete_acls(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Pass the request to the controller, and wait until its changes are applied here."""
    check_authorizer(context)
    services = context.services
    results = await services.controller.own().delete_acls([read_filter(one) for one in request.filters])
    await services.publisher.published(services.image().offset)
    return DeleteAclsResponse(filter_results=[_result(one) for one in results])


def _result(deleted: DeletedAcls) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=deleted.result.error_code,
        error_message=deleted.result.error_message or None,
        matching_acls=[DeleteAclsMatchingAcl(error_message=None, **entry._asdict()) for entry in deleted.entries],
    )
