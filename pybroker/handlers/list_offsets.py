"""ListOffsets: the offset of a time, or of an end of a partition.

Key
    2

Versions
    0-11

Behaviour
    - A time: the first record at or after it that the client may read; none is offset -1 and timestamp -1.
    - -1 latest: the high watermark, for read_committed the last stable offset. -2 earliest. -3 the record with the
      largest timestamp. -4 earliest local, which is the earliest. -5 latest tiered and -6 earliest pending upload: -1.
    - Offsets never go backwards. A leader that was just elected, and does not know yet what older ones have committed,
      answers OFFSET_NOT_AVAILABLE for the end and for times beyond the high watermark (KIP-207); before version 5
      LEADER_NOT_AVAILABLE.
    - UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH per partition; a
      partition that the request has twice is INVALID_REQUEST, one whose log directory failed KAFKA_STORAGE_ERROR.

Version notes
    - Version 0, which Kafka 4 no longer serves, answers with a list: for -1 the high watermark, for -2 the log start,
      for a time the first record at or after it, or else the high watermark; behind the first the log start, if more
      than one is asked for. Kafka gave the beginnings of segments, by the age of their files.
    - -3 from version 7, -4 from 8, -5 from 9 and -6 from 11 on; earlier, and for other negative times,
      UNSUPPORTED_VERSION per partition.
    - Isolation level from version 2, leader epochs from version 4 on.

Not done
    - Replicas asking (replica_id >= 0) are answered like clients: followers here ask by Fetch alone.
    - Throttling; timeout_ms (version 10) has nothing to wait for without tiered storage.
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
"""Before, the answer is a list."""
_FIRST_VERSION_WITH_ISOLATION_LEVEL = 2
_FIRST_VERSION_WITH_LEADER_EPOCH = 4
_FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
_READ_COMMITTED = 1
_NOT_BY_END = frozenset({EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD})
"""Times that are looked up without regard to the high watermark."""


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
    """Look each partition up by itself."""
    return context.services.slices.run(_look_up_all(request, context))


def _look_up_all(request: ListOffsetsRequest, context: BrokerContext) -> Sliced[ListOffsetsResponse]:
    times = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    topics = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            yield
            partitions.append(_answer(topic.name, asked, times[topic.name, asked.partition_index], request, context))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


def _answer(
    topic: str, asked: ListOffsetsPartition, times: int, request: ListOffsetsRequest, context: BrokerContext
) -> ListOffsetsPartitionResponse:
    try:
        if times > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        _check_time(asked.timestamp, context.version)
        partition = leading_partition(topic, asked.partition_index, asked.current_leader_epoch, context)
        committed = (
            context.version >= _FIRST_VERSION_WITH_ISOLATION_LEVEL and request.isolation_level == _READ_COMMITTED
        )
        epoch = partition.leader_epoch
        # Asked first: an end that is read afterwards is not older.
        lags = partition.lags_its_epoch
        end = partition.last_stable_offset if committed else partition.high_watermark
        found = _look_up(partition, asked.timestamp, end)
        still_leads(partition, epoch)
        if lags and (asked.timestamp == LATEST or (found is _NOTHING and asked.timestamp not in _NOT_BY_END)):
            raise ApiError(
                ErrorCode.OFFSET_NOT_AVAILABLE
                if context.version >= _FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
                else ErrorCode.LEADER_NOT_AVAILABLE
            )
        if context.version < _FIRST_VERSION_WITH_ONE_OFFSET:
            return ListOffsetsPartitionResponse(
                partition_index=asked.partition_index,
                old_style_offsets=_old_style(partition, end if found is _NOTHING else found.offset, asked),
            )
    except (ApiError, OSError) as error:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=wire_error(error).code)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if context.version >= _FIRST_VERSION_WITH_LEADER_EPOCH else -1,
    )


def _check_time(timestamp: int, version: int) -> None:
    first = 0 if timestamp >= 0 else _FIRST_VERSION_WITH_TIME.get(timestamp)
    if first is None or version < first:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)


def _look_up(partition: Partition, timestamp: int, end: int) -> _Found:
    """Return what the partition has for a time; nothing at or above `end` is returned."""
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


def _old_style(partition: Partition, offset: int, asked: ListOffsetsPartition) -> list[int]:
    """Return the offset and, behind it, the log start, as far as as many are wanted."""
    offsets = [offset, partition.log_start_offset] if offset > partition.log_start_offset else [offset]
    return offsets[: max(asked.max_num_offsets, 0)]


def _earliest(partition: Partition) -> _Found:
    # The epoch is returned where it is known without a search: an empty log, or one that has seen one epoch only.
    start = partition.log_start_offset
    epoch, epoch_end = partition.end_offset_for_epoch(0)
    if epoch == -1 or epoch_end <= start:
        epoch = -1 if start < partition.log_end_offset else partition.leader_epoch
    return _Found(-1, start, epoch)
