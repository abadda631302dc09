"""DeleteGroups: deletes groups without members, and their offsets (KIP-229).

Key
    42

Versions
    0-2

Behaviour
    - Each group succeeds or fails independently. A group that occurs twice is deleted once.
    - Errors of a group: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import DeleteGroups
from pybroker.coordinator.group.service import by_partition
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.handlers.errors import wire_error
from pybroker.handlers.registry import handles
from pybroker.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.protocol.errors import ErrorCode


def _failed(request: DeleteGroupsRequest, _version: int, error: WireError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=_refused(request.groups_names, error.code))


def _refused(group_ids: list[str], code: ErrorCode) -> list[DeletableGroupResult]:
    return [DeletableGroupResult(group_id=group_id, error_code=code) for group_id in group_ids]


@handles(
    DeleteGroupsRequest,
    requires=[of_items(Operation.DELETE, ResourceType.GROUP, select(DeleteGroupsRequest.groups_names))],
    failed=_failed,
)
async def delete_groups(request: DeleteGroupsRequest, context: BrokerContext) -> DeleteGroupsResponse:
    """Delete groups, in the order of the request."""
    coordinator = context.services.groups
    deleted: dict[str, DeletableGroupResult] = {}
    requested = dict.fromkeys(request.groups_names)
    for partition, group_ids in await context.services.slices.run(by_partition(requested, coordinator)):
        while group_ids:
            try:
                results = await coordinator.submit_to(partition, DeleteGroups(group_ids))
            except CoordinatorError as error:
                results = _refused(group_ids, wire_error(error).code)
            deleted.update((result.group_id, result) for result in results)
            group_ids = group_ids[len(results) :]
    return DeleteGroupsResponse(results=[deleted[group_id] for group_id in requested])
