"""ListOffsets: returns a partition's offset by timestamp, or its earliest or latest offset.

Key
    2

Versions
    0-11

Behaviour
    - A timestamp: the first record at or after it that the client may read; offset -1 and timestamp -1 if there is
      none.
    - -1 latest: the high watermark, for read_committed the last stable offset. -2 earliest. -3 the record with the
      largest timestamp. -4 earliest local, equal to the earliest. -5 latest tiered and -6 earliest pending upload: -1.
    - Offsets never go backwards. A newly elected leader, whose high watermark is not yet up to date, returns
      OFFSET_NOT_AVAILABLE for the latest offset and for timestamps beyond the high watermark (KIP-207); before version
      5, LEADER_NOT_AVAILABLE.
    - UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH per partition;
      INVALID_REQUEST for a partition that occurs twice, KAFKA_STORAGE_ERROR for a failed log directory.

Version notes
    - Version 0, which Kafka 4 does not serve, returns a list: for -1 the high watermark, for -2 the log start offset,
      for a timestamp the first record at or after it, or else the high watermark. The log start offset follows if more
      than one offset is requested. Kafka returned segment base offsets, by the age of their files.
    - -3 since version 7, -4 since 8, -5 since 9 and -6 since 11; earlier, and for other negative timestamps,
      UNSUPPORTED_VERSION per partition.
    - Isolation level since version 2, leader epochs since version 4.

Not done
    - Replicas (replica_id >= 0) are served like clients: pybroker's followers use Fetch only.
    - Throttling; timeout_ms (version 10) has no effect without tiered storage.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from pybroker.handlers.errors import ApiError, WireError, wire_error
from pybroker.handlers.leaders import leading_partition, still_leads
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.storage.native import Partition

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
_FIRST_VERSION_WITH_TIME = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_FIRST_VERSION_WITH_ONE_OFFSET = 1
"""Before it, the response is a list."""
_FIRST_VERSION_WITH_ISOLATION_LEVEL = 2
_FIRST_VERSION_WITH_LEADER_EPOCH = 4
_FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
_READ_COMMITTED = 1
_NOT_BY_END = frozenset({EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD})
"""Special timestamps whose lookup does not depend on the high watermark."""


class _Found(msgspec.Struct, frozen=True):
    timestamp: int
    offset: int
    leader_epoch: int


_NOTHING = _Found(-1, -1, -1)


def _failed(request: ListOffsetsRequest, _version: int, error: WireError) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error.code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@handles(
    ListOffsetsRequest,
    requires=[
        of_items(Operation.DESCRIBE, ResourceType.TOPIC, select(ListOffsetsRequest.topics, ListOffsetsTopic.name))
    ],
    failed=_failed,
)
def list_offsets(request: ListOffsetsRequest, context: BrokerContext) -> Reply:
    """Look up each partition independently."""
    return context.services.slices.run(_look_up_all(request, context))


def _look_up_all(request: ListOffsetsRequest, context: BrokerContext) -> Sliced[ListOffsetsResponse]:
    times = Counter(
        (topic.name, requested.partition_index) for topic in request.topics for requested in topic.partitions
    )
    topics = []
    for topic in request.topics:
        partitions = []
        for requested in topic.partitions:
            yield
            partitions.append(
                _respond(topic.name, requested, times[topic.name, requested.partition_index], request, context)
            )
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


def _respond(
    topic: str, requested: ListOffsetsPartition, times: int, request: ListOffsetsRequest, context: BrokerContext
) -> ListOffsetsPartitionResponse:
    try:
        if times > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        _check_time(requested.timestamp, context.version)
        partition = leading_partition(topic, requested.partition_index, requested.current_leader_epoch, context)
        committed = (
            context.version >= _FIRST_VERSION_WITH_ISOLATION_LEVEL and request.isolation_level == _READ_COMMITTED
        )
        epoch = partition.leader_epoch
        # Read first, so that the end offset is not older.
        lags = partition.lags_its_epoch
        end = partition.last_stable_offset if committed else partition.high_watermark
        found = _look_up(partition, requested.timestamp, end)
        still_leads(partition, epoch)
        if lags and (requested.timestamp == LATEST or (found is _NOTHING and requested.timestamp not in _NOT_BY_END)):
            raise ApiError(
                ErrorCode.OFFSET_NOT_AVAILABLE
                if context.version >= _FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
                else ErrorCode.LEADER_NOT_AVAILABLE
            )
        if context.version < _FIRST_VERSION_WITH_ONE_OFFSET:
            return ListOffsetsPartitionResponse(
                partition_index=requested.partition_index,
                old_style_offsets=_old_style(partition, end if found is _NOTHING else found.offset, requested),
            )
    except (ApiError, OSError) as error:
        return ListOffsetsPartitionResponse(
            partition_index=requested.partition_index, error_code=wire_error(error).code
        )
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if context.version >= _FIRST_VERSION_WITH_LEADER_EPOCH else -1,
    )


def _check_time(timestamp: int, version: int) -> None:
    first = 0 if timestamp >= 0 else _FIRST_VERSION_WITH_TIME.get(timestamp)
    if first is None or version < first:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)


def _look_up(partition: Partition, timestamp: int, end: int) -> _Found:
    """Return the result for a timestamp. Records at or above `end` are not returned."""
    if timestamp == LATEST:
        return _Found(-1, end, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _earliest(partition)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _NOTHING
    found = partition.max_timestamp() if timestamp == MAX_TIMESTAMP else partition.find_timestamp(timestamp)
    if found is None or found[1] >= end:
        return _NOTHING
    return _Found(*found)


def _old_style(partition: Partition, offset: int, requested: ListOffsetsPartition) -> list[int]:
    """Return the offset followed by the log start offset, up to the requested number."""
    offsets = [offset, partition.log_start_offset] if offset > partition.log_start_offset else [offset]
    return offsets[: max(requested.max_num_offsets, 0)]


def _earliest(partition: Partition) -> _Found:
    # The epoch is returned if it is known without a search: for an empty log, or one with a single epoch.
    start = partition.log_start_offset
    epoch, epoch_end = partition.end_offset_for_epoch(0)
    if epoch == -1 or epoch_end <= start:
        epoch = -1 if start < partition.log_end_offset else partition.leader_epoch
    return _Found(-1, start, epoch)
