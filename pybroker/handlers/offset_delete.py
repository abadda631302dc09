"""OffsetDelete: deletes offsets of a group (KIP-496).

Key
    47

Versions
    0-0

Behaviour
    - Each partition succeeds or fails independently. A partition without an offset succeeds.
    - GROUP_SUBSCRIBED_TO_TOPIC for a topic to which a member is subscribed.
    - UNKNOWN_TOPIC_OR_PARTITION for an unknown topic or partition.
    - Errors of the whole request: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP (members that are no
      consumers), NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import InvalidGroupIdError
from pybroker.coordinator.group.events import DeleteOffsets
from pybroker.handlers.registry import handles
from pybroker.machine.parts import MANY, length_of_lists, parts_of_lists
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.metadata.image import TopicsImage


def _failed(_request: OffsetDeleteRequest, _version: int, error: WireError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)


def _refused(request: OffsetDeleteRequest, _version: int, error: WireError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error.code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@handles(
    OffsetDeleteRequest,
    requires=[
        of_request(Operation.DELETE, ResourceType.GROUP, select(OffsetDeleteRequest.group_id)),
        of_items(Operation.READ, ResourceType.TOPIC, select(OffsetDeleteRequest.topics, OffsetDeleteRequestTopic.name)),
    ],
    failed=_failed,
    refused=_refused,
)
def offset_delete(request: OffsetDeleteRequest, context: BrokerContext) -> Reply | Awaitable[OffsetDeleteResponse]:
    """Delete the offsets of existing partitions."""
    if not request.group_id:
        raise InvalidGroupIdError
    unknown: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in request.topics:
        _split_off(topic, context.image.topics, unknown)
    request.topics = [topic for topic in request.topics if topic.partitions]
    if length_of_lists(request.topics, "partitions") > MANY:
        return _delete_in_parts(request, unknown, context)
    reply = context.services.groups.submit(request.group_id, DeleteOffsets(request))
    return reply.through(lambda response: _merged(unknown, response)) if unknown else reply


async def _delete_in_parts(
    request: OffsetDeleteRequest, unknown: dict[str, OffsetDeleteResponseTopic], context: BrokerContext
) -> OffsetDeleteResponse:
    """Delete many offsets in parts, so that the loop serves other requests in between. The first failure ends it."""
    topics: list[OffsetDeleteResponseTopic] = []
    for part in parts_of_lists(request.topics, "partitions"):
        event = DeleteOffsets(msgspec.structs.replace(request, topics=part))
        response: OffsetDeleteResponse = await context.services.groups.submit(request.group_id, event)
        topics += response.topics
    return _merged(unknown, OffsetDeleteResponse(topics=topics))


def _split_off(
    topic: OffsetDeleteRequestTopic, topics: TopicsImage, unknown: dict[str, OffsetDeleteResponseTopic]
) -> None:
    """Remove unknown partitions from a topic, and add their errors to `unknown`, merged by topic."""
    found = topics.by_name.get(topic.name)
    there = {} if found is None else found.partitions
    missing = [one.partition_index for one in topic.partitions if one.partition_index not in there]
    if found is not None and not missing:
        return
    topic.partitions = [one for one in topic.partitions if one.partition_index in there]
    response = unknown.get(topic.name)
    if response is None:
        response = unknown[topic.name] = OffsetDeleteResponseTopic(name=topic.name, partitions=[])
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response.partitions += [OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in missing]


def _merged(topics: dict[str, OffsetDeleteResponseTopic], response: OffsetDeleteResponse) -> OffsetDeleteResponse:
    """Merge the errors of unknown partitions with the results of existing ones, by topic."""
    if response.error_code != ErrorCode.NONE:
        return response
    for topic in response.topics:
        if topic.name in topics:
            topics[topic.name].partitions += topic.partitions
        else:
            topics[topic.name] = topic
    response.topics = list(topics.values())
    return response
