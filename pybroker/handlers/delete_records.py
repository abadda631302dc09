"""DeleteRecords: a later start for logs.

Key
    21

Versions
    0-2

Behaviour
    - The records below the offset are out of reach when the answer comes, on every replica of a broker that is not
      fenced; segments that lie wholly below it are taken
      out of use, and their files removed after file.delete.delay.ms. An offset below the log start changes nothing.
    - -1 stands for the high watermark. Beyond it, and below -1: OFFSET_OUT_OF_RANGE.
    - A partition that is named more than once is answered once, and the offset that is named last counts.
    - The answer is the low watermark: where the earliest log of those replicas starts. The leader's log start is on the
      disk before it is returned, so a crash does not bring the records back.
    - Replicas that take longer than timeout_ms: REQUEST_TIMED_OUT, and what the leader has deleted stays deleted.
    - A topic that is compacted and not deleted from: POLICY_VIOLATION. Kafka's own topics: INVALID_TOPIC_EXCEPTION.
    - UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR per partition; also where a partition
      becomes that while replicas are waited for.

Version notes
    - None.

Not done
    - Throttling.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from pybroker.handlers.errors import ApiError, wire_error
from pybroker.handlers.leaders import leading_partition, still_leads
from pybroker.handlers.registry import handles
from pybroker.metadata.internal_topics import INTERNAL_TOPICS
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select
from pybroker.storage.exhaustion import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.replica.deletions import Deleted
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


@handles(
    DeleteRecordsRequest,
    requires=[
        of_items(Operation.DELETE, ResourceType.TOPIC, select(DeleteRecordsRequest.topics, DeleteRecordsTopic.name))
    ],
    failed=_failed,
)
async def delete_records(request: DeleteRecordsRequest, context: BrokerContext) -> DeleteRecordsResponse:
    """Move each log start by itself, make all of them durable at once, and wait for the other replicas."""
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    asked = _distinct(request)
    outcomes = await loop.run_in_executor(None, _delete, asked, context)
    left_s = request.timeout_ms / 1000 - (time.monotonic() - began)
    deletions = [(one.partition, one.offset) for one in outcomes if isinstance(one, _Moved)]
    replicated = iter(await context.services.deletions.replicated(deletions, left_s))
    answers = iter([_answer(one, replicated) if isinstance(one, _Moved) else one for one in outcomes])
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=[next(answers) for _ in partitions])
            for name, partitions in asked.items()
        ]
    )


def _distinct(request: DeleteRecordsRequest) -> dict[str, dict[int, DeleteRecordsPartition]]:
    """What is asked of each partition, by topic."""
    asked: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update((one.partition_index, one) for one in topic.partitions)
    return asked


class _Moved(msgspec.Struct, frozen=True):
    """A log whose start was moved, or is there already."""

    partition: Partition
    offset: int


def _answer(moved: _Moved, replicated: Iterator[Deleted]) -> DeleteRecordsPartitionResult:
    deleted = next(replicated)
    return DeleteRecordsPartitionResult(
        partition_index=moved.partition.index, low_watermark=deleted.low_watermark, error_code=deleted.error_code
    )


def _delete(
    asked: Mapping[str, Mapping[int, DeleteRecordsPartition]], context: BrokerContext
) -> list[_Moved | DeleteRecordsPartitionResult]:
    outcomes = [_move(name, one, context) for name, partitions in asked.items() for one in partitions.values()]
    if not context.services.partitions.write_log_starts():
        # A crash would bring the records back: the client asks again.
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log starts cannot be written down now; {limits()}")
    return outcomes


def _move(topic: str, asked: DeleteRecordsPartition, context: BrokerContext) -> _Moved | DeleteRecordsPartitionResult:
    try:
        partition = _leading(topic, asked.partition_index, context)
        epoch, high_watermark = partition.leader_epoch, partition.high_watermark
        offset = high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if not 0 <= offset <= high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        still_leads(partition, epoch)
        context.services.retention.delete_records(partition, offset)
    except (ApiError, OSError) as error:
        return _refused(asked.partition_index, wire_error(error).code)
    return _Moved(partition, offset)


def _leading(topic: str, index: int, context: BrokerContext) -> Partition:
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
