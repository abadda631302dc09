"""DescribeGroups: describes groups of the classic protocol, their members and assignments.

Key
    15

Versions
    0-6

Behaviour
    - A group that occurs twice is described once.
    - Members' metadata and the protocol are returned only while the group is stable.
    - Errors of a group: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - Authorized operations since version 3, if requested.
    - A group that is unknown, or of another type, is returned as dead; since version 6, GROUP_ID_NOT_FOUND (KIP-1043).

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import DescribeGroups
from pybroker.coordinator.group.service import by_partition
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.handlers.errors import wire_error
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from pybroker.security.authorizer import authorized_operations
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError


def _failed(request: DescribeGroupsRequest, _version: int, error: WireError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=_refused(request.groups, error.code))


def _refused(group_ids: list[str], code: ErrorCode) -> list[DescribedGroup]:
    return [DescribedGroup(group_id=group_id, error_code=code) for group_id in group_ids]


@handles(
    DescribeGroupsRequest,
    requires=[of_items(Operation.DESCRIBE, ResourceType.GROUP, select(DescribeGroupsRequest.groups))],
    failed=_failed,
)
async def describe_groups(request: DescribeGroupsRequest, context: BrokerContext) -> DescribeGroupsResponse:
    """Describe groups, in the order of the request, each once."""
    coordinator = context.services.groups
    described: dict[str, DescribedGroup] = {}
    requested = dict.fromkeys(request.groups)
    for partition, group_ids in await context.services.slices.run(by_partition(requested, coordinator)):
        try:
            groups = await coordinator.submit_to(partition, DescribeGroups(group_ids, context.version))
        except CoordinatorError as error:
            groups = _refused(group_ids, wire_error(error).code)
        described.update((group.group_id, group) for group in groups)
    if request.include_authorized_operations:
        for group in described.values():
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group.group_id)
    return DescribeGroupsResponse(groups=[described[group_id] for group_id in requested])
