"""ListPartitionReassignments: lists the reassignments in progress (KIP-455).

Key
    46

Versions
    0-0

Behaviour
    - Null topics mean all topics; an empty list means none.
    - Partitions without a reassignment are omitted, as are unknown ones, and topics without any.
    - Served by the controller. Without one, NOT_CONTROLLER at the top level, and the partitions of the request without
      replicas.

Version notes
    - None.

Not done
    - timeout_ms is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(
    request: ListPartitionReassignmentsRequest, _version: int, error: WireError
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )


@handles(
    ListPartitionReassignmentsRequest,
    requires=[of_request(Operation.DESCRIBE, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Return the controller's reassignments in progress."""
    topics = request.topics
    requested = None if topics is None else [(topic.name, topic.partition_indexes) for topic in topics]
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=one.partition,
                        replicas=list(one.replicas),
                        adding_replicas=list(one.adding),
                        removing_replicas=list(one.removing),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in await context.services.controller.own().list_reassignments(requested)
        ],
    )
