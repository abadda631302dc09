"""Shared by the ACL APIs: the check for an authorizer, and the reading of filters.

Must not know the APIs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.protocol.errors import ErrorCode
from pybroker.security.acl_filter import Filter

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.protocol.messages.delete_acls import DeleteAclsFilter
    from pybroker.protocol.messages.describe_acls import DescribeAclsRequest


def check_authorizer(context: RequestContext) -> None:
    """Raise ApiError (SECURITY_DISABLED) if no authorizer is configured."""
    if context.services.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def read_filter(requested: DeleteAclsFilter | DescribeAclsRequest) -> Filter:
    """Return the filter of a request."""
    return Filter(
        requested.resource_type_filter,
        requested.resource_name_filter,
        requested.pattern_type_filter,
        requested.principal_filter,
        requested.host_filter,
        requested.operation,
        requested.permission_type,
    )
