"""What the APIs of access control entries share: that there is an authorizer, and how filters are read.

Must not know what an API does with them.
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
    """Raise ApiError where nobody would decide by entries."""
    if context.services.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def read_filter(asked: DeleteAclsFilter | DescribeAclsRequest) -> Filter:
    """Read a filter."""
    return Filter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )
