"""ConsumerGroupDescribe: describes consumer groups of KIP-848, their members and assignments.

Key
    69

Versions
    0-1

Behaviour
    - A group that occurs twice is described once.
    - Every member has its current assignment, including partitions that it still has to revoke, and its target.
    - Errors of a group: GROUP_ID_NOT_FOUND, also for a classic group, INVALID_GROUP_ID, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS; UNSUPPORTED_VERSION while the feature `group.version` is below 1.

Version notes
    - Version 1 returns the protocol type of each member.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import DescribeConsumerGroups
from pybroker.coordinator.group.service import by_partition
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import ApiError, WireError, wire_error
from pybroker.handlers.registry import handles
from pybroker.metadata.features import GROUP_VERSION
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from pybroker.security.authorizer import authorized_operations
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.handlers.context import BrokerContext


def _failed(request: ConsumerGroupDescribeRequest, _version: int, error: WireError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=_refused(request.group_ids, error))


def _refused(group_ids: Iterable[str], error: WireError) -> list[DescribedGroup]:
    return [
        DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message) for group_id in group_ids
    ]


def _without_hidden_topics(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    """Return the group, or TOPIC_AUTHORIZATION_FAILED if the client may not describe one of its topics."""
    topics = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if all(may(context, Operation.DESCRIBE, ResourceType.TOPIC, name, is_requested=False) for name in topics):
        return group
    words = "The group has described topic(s) that the client is not authorized to describe."
    return DescribedGroup(group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=words)


@handles(
    ConsumerGroupDescribeRequest,
    requires=[
        of_items(Operation.DESCRIBE, ResourceType.GROUP, select(ConsumerGroupDescribeRequest.group_ids)),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC),
    ],
    failed=_failed,
)
async def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: BrokerContext
) -> ConsumerGroupDescribeResponse:
    """Describe groups, in the order of the request, each once."""
    if context.image.features.levels.get(GROUP_VERSION, 0) < 1:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    coordinator = context.services.groups
    requested = dict.fromkeys(request.group_ids)
    nameless = _refused(
        (group_id for group_id in requested if not group_id), WireError(ErrorCode.INVALID_GROUP_ID, None)
    )
    described = {group.group_id: group for group in nameless}
    named = (group_id for group_id in requested if group_id)
    for partition, group_ids in await context.services.slices.run(by_partition(named, coordinator)):
        try:
            groups = await coordinator.submit_to(partition, DescribeConsumerGroups(group_ids))
        except CoordinatorError as error:
            groups = _refused(group_ids, wire_error(error))
        described.update((group.group_id, group) for group in groups)
    if context.authorizer is not None:
        described = {group_id: _without_hidden_topics(group, context) for group_id, group in described.items()}
    if request.include_authorized_operations:
        for group in described.values():
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group.group_id)
    return ConsumerGroupDescribeResponse(groups=[described[group_id] for group_id in requested])
