"""AssignReplicasToDirs: a broker reports the log directories of its replicas (KIP-858).

Key
    73

Versions
    0-0

Behaviour
    - The response is sent when the assignment is committed. Partitions in a failed directory get another leader.
    - For each partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, and NOT_LEADER_OR_FOLLOWER if the broker has no
      replica; the others are assigned. If a replica occurs twice, the last directory counts.
    - BROKER_ID_NOT_REGISTERED, and STALE_BROKER_EPOCH for another incarnation, for the whole request.
    - Served by the active controller on controller listeners; other controllers return NOT_CONTROLLER.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.assign_replicas_to_dirs import (
    AssignedDirectoryData,
    AssignedPartitionData,
    AssignedTopicData,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    TopicData,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError
    from pybroker.metadata.image import MetadataImage


def _failed(_request: AssignReplicasToDirsRequest, _version: int, error: WireError) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=error.code)


@handles(
    AssignReplicasToDirsRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def assign_replicas_to_dirs(
    request: AssignReplicasToDirsRequest, context: ControllerContext
) -> AssignReplicasToDirsResponse:
    """Assign the valid replicas, and return the errors of the others."""
    directories = {
        (topic.topic_id, partition.partition_index): directory.id
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    }
    result = await context.services.controller.own().assign_replicas(
        request.broker_id, request.broker_epoch, directories
    )
    if result.error_code:
        raise ApiError(result.error_code, result.error_message)
    image = context.services.image()
    return AssignReplicasToDirsResponse(
        directories=[
            AssignedDirectoryData(
                id=directory.id, topics=[_assigned(topic, request.broker_id, image) for topic in directory.topics]
            )
            for directory in request.directories
        ]
    )


def _assigned(requested: TopicData, broker_id: int, image: MetadataImage) -> AssignedTopicData:
    topic = image.topics.by_id.get(requested.topic_id)

    def fault(index: int) -> ErrorCode:
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        partition = topic.partitions.get(index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE if broker_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER

    return AssignedTopicData(
        topic_id=requested.topic_id,
        partitions=[
            AssignedPartitionData(partition_index=one.partition_index, error_code=fault(one.partition_index))
            for one in requested.partitions
        ],
    )
