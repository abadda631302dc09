"""AlterPartitionReassignments: reassigns partitions to other replicas, or cancels reassignments (KIP-455, KIP-860).

Key
    45

Versions
    0-1

Behaviour
    - Each partition succeeds or fails independently, in the order of the request. A request without topics does
      nothing.
    - The current replicas are accepted, without a reassignment. A new order of the replicas changes the preferred
      leader, and is completed at once, as is a reassignment that only removes replicas.
    - Null replicas cancel the reassignment in progress; without one, NO_REASSIGNMENT_IN_PROGRESS.
    - Errors, with messages: UNKNOWN_TOPIC_OR_PARTITION; INVALID_REPLICA_ASSIGNMENT for no replicas, a broker that is
      not registered or occurs twice, and a cancellation that would leave an empty ISR.
    - Partitions are processed and committed in parts of some hundred.
    - The response is sent when the replicas are committed, and applied on this broker.

Version notes
    - Since version 1, the request may forbid a change of the replication factor: INVALID_REPLICATION_FACTOR.

Not done
    - timeout_ms is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.machine.slices import each
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.controller.cluster.events import ReassignedPartition, ReassignedTopic
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced


def _failed(
    request: AlterPartitionReassignmentsRequest, _version: int, error: WireError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=one.partition_index, error_code=error.code, error_message=error.message
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


@handles(
    AlterPartitionReassignmentsRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Pass the request to the controller, and wait until its changes are applied here."""
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    services = context.services
    allow = request.allow_replication_factor_change
    reassigned = await services.controller.own().alter_reassignments(
        request.topics, allow_replication_factor_change=allow
    )
    await services.publisher.published(services.image().offset)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=allow,
        error_message=None,
        responses=await services.slices.run(_responses(reassigned)),
    )


def _responses(reassigned: list[ReassignedTopic]) -> Sliced[list[ReassignableTopicResponse]]:
    responses = []
    for topic in reassigned:
        partitions = yield from each(_response, topic.partitions)
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return responses


def _response(one: ReassignedPartition) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=one.partition, error_code=one.error_code, error_message=one.error_message
    )
