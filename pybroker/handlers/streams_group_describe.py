"""StreamsGroupDescribe: describes streams groups of KIP-1071, their topology, members and tasks.

Key
    89

Versions
    0-1

Behaviour
    - A group that occurs twice is described once.
    - The topology has decided partition counts if all its topics are there, else as the member sent it.
    - Every member has its current tasks and its target.
    - Errors of a group: GROUP_ID_NOT_FOUND, also for a group of another type, INVALID_GROUP_ID, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS, TOPIC_AUTHORIZATION_FAILED; UNSUPPORTED_VERSION while the feature `streams.version`
      is below 1.

Version notes
    - Version 1 returns the assignor.

Not done
    - The description of the topology is never stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import DescribeStreamsGroups
from pybroker.coordinator.group.service import by_partition
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import ApiError, WireError, wire_error
from pybroker.handlers.registry import handles
from pybroker.metadata.features import STREAMS_VERSION
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from pybroker.security.authorizer import authorized_operations
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.handlers.context import BrokerContext


def _failed(request: StreamsGroupDescribeRequest, _version: int, error: WireError) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(groups=_refused(request.group_ids, error))


def _refused(group_ids: Iterable[str], error: WireError) -> list[DescribedGroup]:
    return [
        DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message) for group_id in group_ids
    ]


def _without_hidden_topics(group: DescribedGroup, context: BrokerContext) -> DescribedGroup:
    """Return the group, or TOPIC_AUTHORIZATION_FAILED if the client may not describe one of its topics."""
    parts = () if group.topology is None else group.topology.subtopologies or ()
    topics = {
        name
        for part in parts
        for name in (
            *part.source_topics,
            *part.repartition_sink_topics,
            *(topic.name for topic in part.repartition_source_topics),
            *(topic.name for topic in part.state_changelog_topics),
        )
    }
    if all(may(context, Operation.DESCRIBE, ResourceType.TOPIC, name, is_requested=False) for name in topics):
        return group
    words = "The described group uses topics that the client is not authorized to describe."
    return DescribedGroup(group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=words)


@handles(
    StreamsGroupDescribeRequest,
    requires=[
        of_items(Operation.DESCRIBE, ResourceType.GROUP, select(StreamsGroupDescribeRequest.group_ids)),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC),
    ],
    failed=_failed,
)
async def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: BrokerContext
) -> StreamsGroupDescribeResponse:
    """Describe groups, in the order of the request, each once."""
    if context.image.features.levels.get(STREAMS_VERSION, 0) < 1:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    coordinator = context.services.groups
    requested = dict.fromkeys(request.group_ids)
    nameless = _refused(
        (group_id for group_id in requested if not group_id), WireError(ErrorCode.INVALID_GROUP_ID, None)
    )
    described = {group.group_id: group for group in nameless}
    named = (group_id for group_id in requested if group_id)
    for partition, group_ids in await context.services.slices.run(by_partition(named, coordinator)):
        event = DescribeStreamsGroups(group_ids, request.include_topology_description)
        try:
            groups = await coordinator.submit_to(partition, event)
        except CoordinatorError as error:
            groups = _refused(group_ids, wire_error(error))
        described.update((group.group_id, group) for group in groups)
    if context.authorizer is not None:
        described = {group_id: _without_hidden_topics(group, context) for group_id, group in described.items()}
    if request.include_authorized_operations:
        for group in described.values():
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group.group_id)
    return StreamsGroupDescribeResponse(groups=[described[group_id] for group_id in requested])
