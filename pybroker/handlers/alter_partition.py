"""AlterPartition: a leader changes the ISR of its partitions (KIP-497, KIP-704, KIP-841, KIP-903).

Key
    56

Versions
    2-3

Behaviour
    - Each partition succeeds or fails independently. A success returns the partition's new state at the controller.
    - STALE_BROKER_EPOCH for the whole request of a broker that is not registered with this epoch.
    - UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION; NOT_CONTROLLER for epochs newer than the controller's;
      FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION for older ones; INVALID_REQUEST for an invalid ISR; INELIGIBLE_REPLICA
      for a broker that is fenced, in controlled shutdown, or has another epoch.
    - A reassignment is completed if this change completes it. If the leader is not among its replicas,
      NEW_LEADER_ELECTED is returned, although the change is committed.
    - Served by the active controller on controller listeners; other controllers return NOT_CONTROLLER.

Version notes
    - Broker epochs of the new ISR: version 3.

Not done
    - None.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.machine.slices import each
from pybroker.metadata.in_sync import NO_BROKER_EPOCH, InSyncChange
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.alter_partition import (
    AlteredPartitionData,
    AlteredTopicData,
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.in_sync import InSyncResult

_FIRST_VERSION_WITH_BROKER_EPOCHS = 3


def _failed(_request: AlterPartitionRequest, _version: int, error: WireError) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error.code)


@handles(
    AlterPartitionRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def alter_partition(request: AlterPartitionRequest, context: ControllerContext) -> AlterPartitionResponse:
    """Pass the request to the controller."""
    slices = context.services.slices
    changes = await slices.run(_changes(request, with_epochs=context.version >= _FIRST_VERSION_WITH_BROKER_EPOCHS))
    results = await context.services.controller.own().alter_partitions(request.broker_id, request.broker_epoch, changes)
    if any(result.error_code is ErrorCode.STALE_BROKER_EPOCH for result in results):
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
    return AlterPartitionResponse(topics=await slices.run(_respond(results)))


def _changes(request: AlterPartitionRequest, *, with_epochs: bool) -> Sliced[list[InSyncChange]]:
    changes = []
    for topic in request.topics:
        for partition in topic.partitions:
            changes.append(_change(topic.topic_id, partition, with_epochs=with_epochs))
            yield
        yield
    return changes


def _respond(results: Iterable[InSyncResult]) -> Sliced[list[AlteredTopicData]]:
    topics = []
    for topic_id, some in groupby(results, key=lambda result: result.topic_id):
        partitions = yield from each(_altered, some)
        topics.append(AlteredTopicData(topic_id=topic_id, partitions=partitions))
    return topics


def _change(topic_id: bytes, partition: PartitionData, *, with_epochs: bool) -> InSyncChange:
    if with_epochs:
        isr = tuple((one.broker_id, one.broker_epoch) for one in partition.new_isr_with_epochs)
    else:
        isr = tuple((broker_id, NO_BROKER_EPOCH) for broker_id in partition.new_isr)
    return InSyncChange(
        topic_id,
        partition.partition_index,
        partition.leader_epoch,
        partition.partition_epoch,
        isr,
        partition.leader_recovery_state,
    )


def _altered(result: InSyncResult) -> AlteredPartitionData:
    if result.error_code:
        return AlteredPartitionData(partition_index=result.partition, error_code=result.error_code)
    return AlteredPartitionData(
        partition_index=result.partition,
        leader_id=result.leader_id,
        leader_epoch=result.leader_epoch,
        isr=list(result.isr),
        leader_recovery_state=result.leader_recovery_state,
        partition_epoch=result.partition_epoch,
    )
