"""ElectLeaders: elects the preferred leader, or by an unclean election any (KIP-183, KIP-460).

Key
    43

Versions
    0-2

Behaviour
    - A null list means every partition; partitions that need no election are then omitted. An empty list does nothing.
    - Preferred: elects the first replica. If it is not in sync or its broker is not active, the partition keeps its
      leader, or without one gets another in-sync replica as leader. If that changes nothing,
      PREFERRED_LEADER_NOT_AVAILABLE.
    - Unclean: only for partitions without leader. Elects an in-sync replica if there is one, else the first replica
      that is online, which becomes the only in-sync replica: records that only the others have are lost. If none is
      online, ELIGIBLE_LEADERS_NOT_AVAILABLE.
    - ELECTION_NOT_NEEDED for a partition that has the requested leader, UNKNOWN_TOPIC_OR_PARTITION for an unknown one.
    - INVALID_REQUEST for an unknown election type, POLICY_VIOLATION for elections in more than 10000 partitions, both
      at the top level and for each partition of the request.
    - The response is sent when the leaders are committed, and this broker has become leader of its partitions.

Version notes
    - Version 0 elects preferred leaders only and has no top-level error code.

Not done
    - Throttling.
    - timeout_ms is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import ElectionType, Result
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.machine.slices import each
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.controller.cluster.events import ElectedPartition, ElectedTopic
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced

_FIRST_VERSION_WITH_TOP_LEVEL_ERROR = 1


def _failed(request: ElectLeadersRequest, version: int, error: WireError) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error.code if version >= _FIRST_VERSION_WITH_TOP_LEVEL_ERROR else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


@handles(
    ElectLeadersRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def elect_leaders(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Pass the request to the controller, and wait until its changes are applied here."""
    requested = request.topic_partitions
    if requested is not None and not requested:
        return ElectLeadersResponse()
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}") from None
    services = context.services
    elected = await services.controller.own().elect_leaders(
        election_type, None if requested is None else [(topic.topic, topic.partitions) for topic in requested]
    )
    if isinstance(elected, Result):
        raise ApiError(elected.error_code, elected.error_message)
    await services.publisher.published(services.image().offset)
    return ElectLeadersResponse(replica_election_results=await services.slices.run(_results(elected)))


def _results(elected: list[ElectedTopic]) -> Sliced[list[ReplicaElectionResult]]:
    results = []
    for topic in elected:
        partitions = yield from each(_result, topic.partitions)
        results.append(ReplicaElectionResult(topic=topic.name, partition_result=partitions))
    return results


def _result(one: ElectedPartition) -> PartitionResult:
    return PartitionResult(partition_id=one.partition, error_code=one.error_code, error_message=one.error_message)
