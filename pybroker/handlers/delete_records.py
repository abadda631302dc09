"""DeleteRecords: a later start for logs.

Key
    21

Versions
    0-2

Behaviour
    - The records below the offset are out of reach when the answer comes; segments that lie wholly below it are taken
      out of use, and their files removed after file.delete.delay.ms. An offset below the log start changes nothing.
    - -1 stands for the high watermark. Beyond it, and below -1: OFFSET_OUT_OF_RANGE.
    - The answer is the log start. It is on the disk before it is returned, so a crash does not bring the records back.
    - A topic that is compacted and not deleted from: POLICY_VIOLATION. Kafka's own topics: INVALID_TOPIC_EXCEPTION.
    - UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR per partition.

Version notes
    - None.

Not done
    - Followers: with one replica the low watermark is the leader's log start, so nothing is waited for.
    - Rights, throttling; timeout_ms is not looked at.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError, wire_error
from pybroker.handlers.leaders import leading_partition
from pybroker.handlers.registry import handles
from pybroker.handlers.topic_metadata import INTERNAL_TOPICS
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.storage.exhaustion import limits

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.storage.native import Partition

HIGH_WATERMARK = -1
"""The offset that stands for all that is committed."""
_NO_OFFSET = -1
_ANY_EPOCH = -1


def _failed(request: DeleteRecordsRequest, _version: int, error: WireError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_refused(partition.partition_index, error.code) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _refused(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_OFFSET, error_code=code)


@handles(DeleteRecordsRequest, requires=[of_items(Operation.DELETE, ResourceType.TOPIC, "topics.name")], failed=_failed)
async def delete_records(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    """Move each log start by itself, then make all of them durable at once."""
    return await asyncio.get_running_loop().run_in_executor(None, _delete, request, context)


def _delete(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_answer(topic.name, asked, context) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    if not context.services.partitions.write_log_starts():
        # A crash would bring the records back: the client asks again.
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log starts cannot be written down now; {limits()}")
    return response


def _answer(topic: str, asked: DeleteRecordsPartition, context: RequestContext) -> DeleteRecordsPartitionResult:
    try:
        partition = _leading(topic, asked.partition_index, context)
        high_watermark = partition.high_watermark
        offset = high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if not 0 <= offset <= high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        start = context.services.retention.delete_records(partition, offset)
    except (ApiError, OSError) as error:
        return _refused(asked.partition_index, wire_error(error).code)
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=start)


def _leading(topic: str, index: int, context: RequestContext) -> Partition:
    """Return the open partition if this broker leads it and its records may be deleted; raises ApiError."""
    partition = leading_partition(topic, index, _ANY_EPOCH, context)
    if topic in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    settings = context.services.publisher.settings_of(topic)
    if settings is None:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if settings.cleanup_policy == ("compact",):
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    return partition
