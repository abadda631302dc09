"""OffsetFetch: returns committed offsets of groups.

Key
    9

Versions
    1-10

Behaviour
    - A partition without a committed offset, and every partition of an unknown group, has offset -1 and no error.
    - A null list of topics means all topics of the group.
    - A member of a group of KIP-848 that sends its epoch is checked: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
    - All offsets of a group are in a response only once, even if they are requested several times. Errors are repeated.
    - Errors of a group: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - Version 1 cannot request all topics, and has error codes in partitions only.
    - Many groups since version 8, each with an error code.
    - Since version 7, the client may request stable offsets (KIP-447): UNSTABLE_OFFSET_COMMIT for a partition whose
      offset an open transaction may change.
    - Topics by id since version 10: UNKNOWN_TOPIC_ID for an unknown one. An offset that was committed for another topic
      with the same name is not returned.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.events import FetchOffsets
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.handlers.authorizing import may, may_by_id
from pybroker.handlers.errors import ApiError, wire_error
from pybroker.handlers.registry import handles
from pybroker.machine.parts import MANY, MAX_WEIGHT, length_of_lists, parts, parts_of_lists
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.offset_fetch import (
    FIRST_VERSION_WITH_MANY_GROUPS,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from pybroker.protocol.schema import ZERO_UUID
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.metadata.image import TopicsImage

_FIRST_VERSION_WITH_GROUP_ERROR = 2
_FIRST_VERSION_WITH_TOPIC_IDS = 10


def _failed(request: OffsetFetchRequest, version: int, error: WireError) -> OffsetFetchResponse:
    if version >= FIRST_VERSION_WITH_MANY_GROUPS:
        groups = [OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code) for group in request.groups]
        return OffsetFetchResponse(groups=groups)
    if version >= _FIRST_VERSION_WITH_GROUP_ERROR:
        return OffsetFetchResponse(error_code=error.code)
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, metadata="", error_code=error.code
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return OffsetFetchResponse(topics=topics)


@handles(
    OffsetFetchRequest,
    requires=[
        of_items(
            Operation.DESCRIBE,
            ResourceType.GROUP,
            select(OffsetFetchRequest.group_id),
            select(OffsetFetchRequest.groups, OffsetFetchRequestGroup.group_id),
        ),
        of_items(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            select(OffsetFetchRequest.topics, OffsetFetchRequestTopic.name),
            select(OffsetFetchRequest.groups, OffsetFetchRequestGroup.topics, OffsetFetchRequestTopics.name),
            select(OffsetFetchRequest.groups, OffsetFetchRequestGroup.topics, OffsetFetchRequestTopics.topic_id),
        ),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC, when="all topics of a group are asked for"),
    ],
    failed=_failed,
    authorizes_itself=True,
)
def offset_fetch(
    request: OffsetFetchRequest, context: BrokerContext
) -> OffsetFetchResponse | Reply | Awaitable[OffsetFetchResponse]:
    """Return the committed offsets of one group, or of several."""
    if context.authorizer is not None:
        return _fetch_checked(request, context)
    if context.version >= FIRST_VERSION_WITH_MANY_GROUPS:
        return _fetch_many(request.groups, context, stable=request.require_stable)
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    if _weight(group) > MANY:
        return _fetch_one(group, context, stable=request.require_stable)
    reply = context.services.groups.submit(request.group_id, FetchOffsets(group, request.require_stable))
    return reply.through(_of_one)


async def _fetch_checked(request: OffsetFetchRequest, context: BrokerContext) -> OffsetFetchResponse:
    """Return the offsets of groups and topics that the client may describe, and errors for the others."""
    if context.version >= FIRST_VERSION_WITH_MANY_GROUPS:
        responses: list[OffsetFetchResponseGroup] = []
        whole: set[str] = set()
        for one in _without_repeats(request.groups):
            responses += await _fetch_group(one, whole, context, stable=request.require_stable)
        return OffsetFetchResponse(groups=responses)
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    (response,) = await _fetch_group(group, set(), context, stable=request.require_stable)
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code))
    return _of_one(response)


async def _fetch_group(
    group: OffsetFetchRequestGroup, whole: set[str], context: BrokerContext, *, stable: bool
) -> list[OffsetFetchResponseGroup]:
    """Return the result of one group, or an empty list if the response already has it (`_fetch_whole`)."""
    if not may(context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        return [OffsetFetchResponseGroup(group_id=group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    if group.topics is None:
        responses = await _fetch_whole(group, whole, context, stable=stable)
        for response in responses:
            response.topics = [topic for topic in response.topics if _may_describe(topic, context, is_requested=False)]
        return responses
    visible: list[OffsetFetchRequestTopics] = []
    hidden: list[OffsetFetchRequestTopics] = []
    for topic in group.topics:
        (visible if _may_describe(topic, context) else hidden).append(topic)
    (response,) = (await _fetch_many([msgspec.structs.replace(group, topics=visible)], context, stable=stable)).groups
    return [response if response.error_code else _with_hidden(response, hidden)]


def _may_describe(
    topic: OffsetFetchRequestTopics | OffsetFetchResponseTopics, context: BrokerContext, *, is_requested: bool = True
) -> bool:
    if not topic.name and topic.topic_id != ZERO_UUID:
        return may_by_id(context, Operation.DESCRIBE, topic.topic_id)
    return may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name, is_requested=is_requested)


def _with_hidden(
    response: OffsetFetchResponseGroup, hidden: list[OffsetFetchRequestTopics]
) -> OffsetFetchResponseGroup:
    for topic in hidden:
        partitions = [
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=-1,
                metadata="",
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
            for index in topic.partition_indexes
        ]
        response.topics.append(
            OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        )
    return response


def _of_one(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """Return the response for versions with a single group."""
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


async def _fetch_many(
    groups: list[OffsetFetchRequestGroup], context: BrokerContext, *, stable: bool
) -> OffsetFetchResponse:
    responses: list[OffsetFetchResponseGroup] = []
    whole: set[str] = set()
    for part in parts(_without_repeats(groups), _weight):
        if part[0].topics is None:
            responses += await _fetch_whole(part[0], whole, context, stable=stable)
            continue
        if len(part) == 1 and _weight(part[0]) > MANY:
            responses.append(await _fetch_in_parts(part[0], context, stable=stable))
            continue
        # All are submitted before the first is awaited, so that they are handled in one batch.
        requested = [_submit(group, context, stable=stable) for group in part]
        responses += [await _respond(group, reply) for group, reply in zip(part, requested, strict=True)]
    return OffsetFetchResponse(groups=responses)


def _without_repeats(groups: list[OffsetFetchRequestGroup]) -> list[OffsetFetchRequestGroup]:
    """Return the groups without repeated requests of a member, with the same epoch, for all offsets of a group."""
    seen: set[tuple[str, str | None, int]] = set()
    kept = []
    for group in groups:
        if group.topics is None:
            requested = group.group_id, group.member_id, group.member_epoch
            if requested in seen:
                continue
            seen.add(requested)
        kept.append(group)
    return kept


async def _fetch_whole(
    group: OffsetFetchRequestGroup, whole: set[str], context: BrokerContext, *, stable: bool
) -> list[OffsetFetchResponseGroup]:
    """Return all offsets of a group, and add it to `whole`, the groups whose offsets the response already has.

    The offsets are the same for every valid member. So for a group in `whole`, only the member is validated, and a
    valid one has no further result. Otherwise a small request could cause a very large response.
    """
    again = group.group_id in whole
    requested = msgspec.structs.replace(group, topics=[]) if again else group
    response = await _respond(requested, _submit(requested, context, stable=stable))
    if response.error_code:
        return [response]
    if again:
        return []
    whole.add(group.group_id)
    return [response]


def _weight(group: OffsetFetchRequestGroup) -> int:
    """Return the weight of a group in a part. A request for all offsets of a group is a part of its own."""
    return MAX_WEIGHT if group.topics is None else 1 + length_of_lists(group.topics, "partition_indexes")


async def _fetch_one(group: OffsetFetchRequestGroup, context: BrokerContext, *, stable: bool) -> OffsetFetchResponse:
    return _of_one(await _fetch_in_parts(group, context, stable=stable))


async def _fetch_in_parts(
    group: OffsetFetchRequestGroup, context: BrokerContext, *, stable: bool
) -> OffsetFetchResponseGroup:
    """Return many offsets, read in parts, so that the loop serves other requests in between."""
    topics: list[OffsetFetchResponseTopics] = []
    for part in parts_of_lists(group.topics or [], "partition_indexes"):
        some = msgspec.structs.replace(group, topics=part)
        response = await _respond(some, _submit(some, context, stable=stable))
        if response.error_code:
            return response
        topics += response.topics
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


async def _respond(group: OffsetFetchRequestGroup, reply: Reply | CoordinatorError) -> OffsetFetchResponseGroup:
    try:
        if isinstance(reply, CoordinatorError):
            raise reply
        response: OffsetFetchResponseGroup = await reply
    except CoordinatorError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=wire_error(error).code)
    return response


def _submit(group: OffsetFetchRequestGroup, context: BrokerContext, *, stable: bool) -> Reply | CoordinatorError:
    unknown = []
    topics = context.image.topics
    by_id = context.version >= _FIRST_VERSION_WITH_TOPIC_IDS
    if by_id and group.topics is not None:
        unknown = [topic for topic in group.topics if not _named(topic, topics)]
        group.topics = [topic for topic in group.topics if topic.name]
    try:
        reply = context.services.groups.submit(group.group_id, FetchOffsets(group, stable))
    except CoordinatorError as error:
        return error
    if not by_id:
        return reply
    if group.topics is None:
        return reply.through(lambda response: _with_ids(response, topics))
    return reply.through(lambda response: _with_unknown(response, unknown)) if unknown else reply


def _named(topic: OffsetFetchRequestTopics, topics: TopicsImage) -> bool:
    """Set the name of a topic that is requested by id. Return whether the topic exists."""
    found = topics.by_id.get(topic.topic_id)
    topic.name = "" if found is None else found.name
    return found is not None


def _with_ids(response: OffsetFetchResponseGroup, topics: TopicsImage) -> OffsetFetchResponseGroup:
    """Set the topic ids in a group's result, and remove topics that do not exist."""
    for topic in response.topics:
        found = topics.by_name.get(topic.name)
        topic.topic_id = ZERO_UUID if found is None else found.topic_id
    response.topics = [topic for topic in response.topics if topic.topic_id != ZERO_UUID]
    return response


def _with_unknown(
    response: OffsetFetchResponseGroup, unknown: list[OffsetFetchRequestTopics]
) -> OffsetFetchResponseGroup:
    for topic in unknown:
        partitions = [
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNKNOWN_TOPIC_ID
            )
            for index in topic.partition_indexes
        ]
        response.topics.append(OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions))
    return response
