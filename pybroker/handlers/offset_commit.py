"""OffsetCommit: keeps how far a group has read.

Key
    8

Versions
    2-10

Behaviour
    - Each partition succeeds or fails by itself; the answer comes when the offsets are committed to __consumer_offsets.
    - A commit with generation -1 and no member id comes from outside of the group: it is taken while the group has no
      members, and makes a group that only keeps offsets where there is none.
    - A commit of a member is a sign of life: its session begins anew.
    - A topic that is unknown is UNKNOWN_TOPIC_OR_PARTITION (UNKNOWN_TOPIC_ID by id), and so is a partition that it does
      not have; text longer than offset.metadata.max.bytes is OFFSET_METADATA_TOO_LARGE.
    - Errors of all partitions: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS (until
      the leader has assigned), STALE_MEMBER_EPOCH, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
      COORDINATOR_NOT_AVAILABLE (not committed within offsets.commit.timeout.ms; it may be later).
    - A commit whose record is larger than max.message.bytes of __consumer_offsets is UNKNOWN_SERVER_ERROR.

Version notes
    - Versions 2-4 may say how long the offsets are to be kept.
    - From version 9 on members of groups of KIP-848 commit by their epoch, and a group that is unknown is
      GROUP_ID_NOT_FOUND; before, it is ILLEGAL_GENERATION.
    - Topics by id from version 10 on. The id is kept with the offset, so that another topic of the same name does not
      inherit it.

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

_Answers = dict[tuple[bytes, str], OffsetCommitResponseTopic]
"""By id and name of the topic."""


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
    """Commit what can be, and answer for all."""
    version = context.version
    refused = _sort_out(request, context.image.topics, by_id=version >= _FIRST_VERSION_WITH_TOPIC_IDS)
    if not request.topics:
        return OffsetCommitResponse(topics=list(refused.values()))
    if length_of_lists(request.topics, "partitions") > MANY:
        return _commit_in_parts(request, refused, context)
    if refused:
        return _commit_beside(request, refused, context)
    return context.services.groups.submit(request.group_id, CommitOffsets(request, version))


def _commit_beside(request: OffsetCommitRequest, refused: _Answers, context: BrokerContext) -> Reply:
    """Commit what exists, and answer also for what does not: it has its own error, whatever becomes of the others."""
    answer = Reply()

    def complete(response: OffsetCommitResponse | None, error: Exception | None) -> None:
        if response is None:
            assert error is not None
            response = _failed(request, context.version, wire_error(error))
        answer(_merged(refused, response.topics), None)

    try:
        reply = context.services.groups.submit(request.group_id, CommitOffsets(request, context.version))
    except CoordinatorError as error:
        complete(None, error)
    else:
        reply.on_complete(complete)
    return answer


async def _commit_in_parts(
    request: OffsetCommitRequest, refused: _Answers, context: BrokerContext
) -> OffsetCommitResponse:
    """Commit so many offsets that one decision about all would hold up others: each partition gets its own result."""
    topics: list[OffsetCommitResponseTopic] = []
    overdue: ErrorCode | None = None
    for part in parts_of_lists(request.topics, "partitions"):
        if overdue is not None:
            topics += [_refused(topic, overdue) for topic in part]
            continue
        event = CommitOffsets(msgspec.structs.replace(request, topics=part), context.version)
        try:
            response: OffsetCommitResponse = await context.services.groups.submit(request.group_id, event)
        except Exception as error:  # noqa: BLE001 - the answer to the partitions of this part
            code = wire_error(error).code
            topics += [_refused(topic, code) for topic in part]
            if isinstance(error, UncommittedError):
                overdue = code  # Each part that follows would wait as long.
        else:
            topics += response.topics
    return _merged(refused, topics)


def _sort_out(request: OffsetCommitRequest, topics: TopicsImage, *, by_id: bool) -> _Answers:
    """Take out of the request what does not exist, complete names and ids, and return the answers to what is out.

    A topic without partitions is taken out as well, and has no answer where it exists.
    """
    refused: _Answers = {}
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
    """Take the partitions out of a topic that it does not have, and return the answer to them."""
    missing = [partition for partition in topic.partitions if partition.partition_index not in found.partitions]
    topic.partitions = [partition for partition in topic.partitions if partition.partition_index in found.partitions]
    gone = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=missing)
    return _refused(gone, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _merged(answers: _Answers, topics: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
    """Add to the answers those to what exists, and make them the response."""
    for topic in topics:
        _add(answers, topic)
    return OffsetCommitResponse(topics=list(answers.values()))


def _add(answers: _Answers, topic: OffsetCommitResponseTopic) -> None:
    """Add the answer to a topic, or to some of its partitions; a topic that is named twice is answered as one."""
    before = answers.get((topic.topic_id, topic.name))
    if before is None:
        answers[topic.topic_id, topic.name] = topic
    else:
        before.partitions += topic.partitions
