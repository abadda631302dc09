"""DeleteRecords: deletes records before an offset.

Key
    21

Versions
    0-2

Behaviour
    - When the response is sent, the records below the offset cannot be read on any replica of an unfenced broker.
      Segments entirely below it are deleted, and their files removed after file.delete.delay.ms. An offset below the
      log start offset changes nothing.
    - -1 is the high watermark. OFFSET_OUT_OF_RANGE for an offset above it, or below -1.
    - A partition that occurs more than once has one result, and the last offset counts.
    - The response has the low watermark: the lowest log start offset of those replicas. The leader's log start offset
      is on disk before the response is sent, so a crash does not restore the records.
    - REQUEST_TIMED_OUT if replicas take longer than timeout_ms. The leader's records stay deleted.
    - POLICY_VIOLATION for a topic with cleanup.policy=compact only. INVALID_TOPIC_EXCEPTION for an internal topic.
    - UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR per partition, also if the error occurs
      while the request waits for replicas.

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
"""The offset that represents the high watermark."""
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
    """Move each log start offset independently, write all of them to disk together, and wait for the other replicas."""
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    requested = _distinct(request)
    outcomes = await loop.run_in_executor(None, _delete, requested, context)
    left_s = request.timeout_ms / 1000 - (time.monotonic() - began)
    deletions = [(one.partition, one.offset) for one in outcomes if isinstance(one, _Moved)]
    replicated = iter(await context.services.deletions.replicated(deletions, left_s))
    responses = iter([_respond(one, replicated) if isinstance(one, _Moved) else one for one in outcomes])
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=[next(responses) for _ in partitions])
            for name, partitions in requested.items()
        ]
    )


def _distinct(request: DeleteRecordsRequest) -> dict[str, dict[int, DeleteRecordsPartition]]:
    """Return the last entry of each partition, by topic."""
    requested: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        requested.setdefault(topic.name, {}).update((one.partition_index, one) for one in topic.partitions)
    return requested


class _Moved(msgspec.Struct, frozen=True):
    """A log whose start offset is at or above the requested offset."""

    partition: Partition
    offset: int


def _respond(moved: _Moved, replicated: Iterator[Deleted]) -> DeleteRecordsPartitionResult:
    deleted = next(replicated)
    return DeleteRecordsPartitionResult(
        partition_index=moved.partition.index, low_watermark=deleted.low_watermark, error_code=deleted.error_code
    )


def _delete(
    requested: Mapping[str, Mapping[int, DeleteRecordsPartition]], context: BrokerContext
) -> list[_Moved | DeleteRecordsPartitionResult]:
    outcomes = [_move(name, one, context) for name, partitions in requested.items() for one in partitions.values()]
    if not context.services.partitions.write_log_starts():
        # A crash would restore the records, so the client must retry.
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log start offsets cannot be written; {limits()}")
    return outcomes


def _move(
    topic: str, requested: DeleteRecordsPartition, context: BrokerContext
) -> _Moved | DeleteRecordsPartitionResult:
    try:
        partition = _leading(topic, requested.partition_index, context)
        epoch, high_watermark = partition.leader_epoch, partition.high_watermark
        offset = high_watermark if requested.offset == HIGH_WATERMARK else requested.offset
        if not 0 <= offset <= high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        still_leads(partition, epoch)
        context.services.retention.delete_records(partition, offset)
    except (ApiError, OSError) as error:
        return _refused(requested.partition_index, wire_error(error).code)
    return _Moved(partition, offset)


def _leading(topic: str, index: int, context: BrokerContext) -> Partition:
    """Return the open partition if this broker is its leader and its records may be deleted. Raises ApiError."""
    partition = leading_partition(topic, index, _ANY_EPOCH, context)
    if topic in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    settings = context.services.publisher.settings_of(topic)
    if settings is None:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if settings.cleanup_policy == ("compact",):
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    return partition
