"""OffsetCommit: commits offsets of a group.

Key
    8

Versions
    2-10

Behaviour
    - Each partition succeeds or fails independently. The response is sent when the offsets are committed to
      __consumer_offsets.
    - A commit with generation -1 and no member id is from outside of the group. It is accepted while the group has no
      members, and creates a group that only stores offsets if there is none.
    - A commit of a member renews its session.
    - UNKNOWN_TOPIC_OR_PARTITION for an unknown topic or partition (UNKNOWN_TOPIC_ID by id); OFFSET_METADATA_TOO_LARGE
      for metadata longer than offset.metadata.max.bytes.
    - Errors of all partitions: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS (until
      the leader's assignment), STALE_MEMBER_EPOCH, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
      COORDINATOR_NOT_AVAILABLE (not committed within offsets.commit.timeout.ms; it may still be committed).
    - UNKNOWN_SERVER_ERROR for a commit whose record is larger than max.message.bytes of __consumer_offsets.

Version notes
    - Versions 2-4 may have the retention time of the offsets.
    - Since version 9, members of KIP-848 groups commit with their epoch, and an unknown group returns
      GROUP_ID_NOT_FOUND; before, ILLEGAL_GENERATION.
    - Topics by id since version 10. The id is stored with the offset, so that another topic with the same name does not
      inherit the offset.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.events import CommitOffsets
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.handlers.errors import wire_error
from pybroker.handlers.registry import handles
from pybroker.machine.parts import MANY, length_of_lists, parts_of_lists
from pybroker.machine.reply import Reply
from pybroker.machine.runner import UncommittedError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.metadata.image import TopicImage, TopicsImage

_FIRST_VERSION_WITH_TOPIC_IDS = 10

_Responses = dict[tuple[bytes, str], OffsetCommitResponseTopic]
"""By topic id and name."""


def _failed(request: OffsetCommitRequest, _version: int, error: WireError) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )


@handles(
    OffsetCommitRequest,
    requires=[
        of_request(Operation.READ, ResourceType.GROUP, select(OffsetCommitRequest.group_id)),
        of_items(
            Operation.READ,
            ResourceType.TOPIC,
            select(OffsetCommitRequest.topics, OffsetCommitRequestTopic.name),
            select(OffsetCommitRequest.topics, OffsetCommitRequestTopic.topic_id),
        ),
    ],
    failed=_failed,
)
def offset_commit(
    request: OffsetCommitRequest, context: BrokerContext
) -> OffsetCommitResponse | Reply | Awaitable[OffsetCommitResponse]:
    """Commit the offsets of existing partitions, and return the results of all."""
    version = context.version
    refused = _sort_out(request, context.image.topics, by_id=version >= _FIRST_VERSION_WITH_TOPIC_IDS)
    if not request.topics:
        return OffsetCommitResponse(topics=list(refused.values()))
    if length_of_lists(request.topics, "partitions") > MANY:
        return _commit_in_parts(request, refused, context)
    if refused:
        return _commit_beside(request, refused, context)
    return context.services.groups.submit(request.group_id, CommitOffsets(request, version))


def _commit_beside(request: OffsetCommitRequest, refused: _Responses, context: BrokerContext) -> Reply:
    """Commit the offsets of existing partitions, and merge the results with the errors of the others."""
    merged = Reply()

    def complete(response: OffsetCommitResponse | None, error: Exception | None) -> None:
        if response is None:
            assert error is not None
            response = _failed(request, context.version, wire_error(error))
        merged(_merged(refused, response.topics), None)

    try:
        reply = context.services.groups.submit(request.group_id, CommitOffsets(request, context.version))
    except CoordinatorError as error:
        complete(None, error)
    else:
        reply.on_complete(complete)
    return merged


async def _commit_in_parts(
    request: OffsetCommitRequest, refused: _Responses, context: BrokerContext
) -> OffsetCommitResponse:
    """Commit many offsets in parts, so that the loop serves other requests in between."""
    topics: list[OffsetCommitResponseTopic] = []
    overdue: ErrorCode | None = None
    for part in parts_of_lists(request.topics, "partitions"):
        if overdue is not None:
            topics += [_refused(topic, overdue) for topic in part]
            continue
        event = CommitOffsets(msgspec.structs.replace(request, topics=part), context.version)
        try:
            response: OffsetCommitResponse = await context.services.groups.submit(request.group_id, event)
        except Exception as error:  # noqa: BLE001 - it becomes the error of this part's partitions
            code = wire_error(error).code
            topics += [_refused(topic, code) for topic in part]
            if isinstance(error, UncommittedError):
                overdue = code  # The following parts would time out too.
        else:
            topics += response.topics
    return _merged(refused, topics)


def _sort_out(request: OffsetCommitRequest, topics: TopicsImage, *, by_id: bool) -> _Responses:
    """Remove unknown partitions from the request, set both names and ids, and return the removed partitions' errors.

    A topic without partitions is removed too, without a result if it exists.
    """
    refused: _Responses = {}
    is_whole = True
    for topic in request.topics:
        found = topics.by_id.get(topic.topic_id) if by_id else topics.by_name.get(topic.name)
        if found is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            _add(refused, _refused(topic, unknown))
            topic.partitions = []
            is_whole = False
            continue
        topic.name, topic.topic_id = found.name, found.topic_id
        for partition in topic.partitions:
            if partition.partition_index not in found.partitions:
                _add(refused, _take_out_missing(topic, found))
                is_whole = False
                break
        else:
            is_whole = is_whole and bool(topic.partitions)
    if not is_whole:
        request.topics = [topic for topic in request.topics if topic.partitions]
    return refused


def _take_out_missing(topic: OffsetCommitRequestTopic, found: TopicImage) -> OffsetCommitResponseTopic:
    """Remove unknown partitions from a topic, and return their errors."""
    missing = [partition for partition in topic.partitions if partition.partition_index not in found.partitions]
    topic.partitions = [partition for partition in topic.partitions if partition.partition_index in found.partitions]
    removed = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=missing)
    return _refused(removed, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _merged(responses: _Responses, topics: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
    """Return the response with both the errors and the results of existing topics."""
    for topic in topics:
        _add(responses, topic)
    return OffsetCommitResponse(topics=list(responses.values()))


def _add(responses: _Responses, topic: OffsetCommitResponseTopic) -> None:
    """Add results of a topic. Results of a topic that occurs twice are merged."""
    before = responses.get((topic.topic_id, topic.name))
    if before is None:
        responses[topic.topic_id, topic.name] = topic
    else:
        before.partitions += topic.partitions
