"""OffsetForLeaderEpoch: returns the end offset of a leader epoch, to truncate diverging logs.

Key
    23

Versions
    2-4

Behaviour
    - Returns the largest known epoch at or below the requested one, and its end offset: the start offset of the next
      epoch, or the log end offset for the newest epoch.
    - Epoch and offset -1 without an error for an epoch newer than all, or if no epoch is known.
    - UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH per partition.

Version notes
    - Version 3 adds the replica id, which has no effect; version 4 is flexible.

Not done
    - Versions 0 and 1, as in Kafka 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError, WireError, wire_error
from pybroker.handlers.leaders import leading_partition, still_leads
from pybroker.handlers.registry import handles
from pybroker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced


def _failed(request: OffsetForLeaderEpochRequest, _version: int, error: WireError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=partition.partition, error_code=error.code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@handles(
    OffsetForLeaderEpochRequest,
    requires=[
        of_items(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            select(OffsetForLeaderEpochRequest.topics, OffsetForLeaderTopic.topic),
            unless=Operation.CLUSTER_ACTION,
        )
    ],
    failed=_failed,
)
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, context: BrokerContext) -> Reply:
    """Look up each partition independently."""
    return context.services.slices.run(_look_up_all(request, context))


def _look_up_all(request: OffsetForLeaderEpochRequest, context: BrokerContext) -> Sliced[OffsetForLeaderEpochResponse]:
    topics = []
    for topic in request.topics:
        partitions = []
        for requested in topic.partitions:
            yield
            partitions.append(_respond(topic.topic, requested, context))
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
    return OffsetForLeaderEpochResponse(topics=topics)


def _respond(topic: str, requested: OffsetForLeaderPartition, context: BrokerContext) -> EpochEndOffset:
    try:
        partition = leading_partition(topic, requested.partition, requested.current_leader_epoch, context)
        leads_under = partition.leader_epoch
        epoch, end = partition.end_offset_for_epoch(requested.leader_epoch)
        still_leads(partition, leads_under)
    except ApiError as error:
        return EpochEndOffset(partition=requested.partition, error_code=wire_error(error).code)
    return EpochEndOffset(partition=requested.partition, leader_epoch=epoch, end_offset=end)
