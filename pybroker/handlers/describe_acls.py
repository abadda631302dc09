"""DescribeAcls: returns the access control entries that a filter matches.

Key
    29

Versions
    1-3

Behaviour
    - Entries are grouped by their resource pattern.
    - INVALID_REQUEST for a filter with an unknown number.
    - SECURITY_DISABLED if the broker has no authorizer.

Version notes
    - Prefixed patterns: since version 1 (KIP-290), the first that is served.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.acl_entries import check_authorizer, read_filter
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.security.acl_filter import Filter


def _failed(_request: DescribeAclsRequest, _version: int, error: WireError) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error.code, error_message=error.message or error.code.message)


@handles(
    DescribeAclsRequest,
    requires=[of_request(Operation.DESCRIBE, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
)
def describe_acls(request: DescribeAclsRequest, context: RequestContext) -> Reply:
    """Return the matching entries of this node's image."""
    check_authorizer(context)
    wanted = read_filter(request)
    fault = wanted.fault()
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, fault)
    return context.services.slices.run(_describe(wanted, context))


def _describe(wanted: Filter, context: RequestContext) -> Sliced[DescribeAclsResponse]:
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for entry in context.image.acls.by_id.values():
        yield
        if not wanted.matches(entry):
            continue
        pattern = entry[:3]
        resource = resources.get(pattern)
        if resource is None:
            kind, name, pattern_type = pattern
            resource = DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern_type, acls=[])
            resources[pattern] = resource
        _, _, _, principal, host, operation, permission = entry
        resource.acls.append(
            AclDescription(principal=principal, host=host, operation=operation, permission_type=permission)
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))
