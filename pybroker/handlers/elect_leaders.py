"""ElectLeaders: another leader on demand, the preferred one or any (KIP-183, KIP-460).

Key
    43

Versions
    0-2

Behaviour
    - No list of partitions is every partition, and then those that need no election are left out. An empty list is
      answered without a check of any partition.
    - Preferred: the first replica, where it does not lead. If it is out of sync or cannot serve, the partition keeps
      its leader, or gets another one in sync where it has none; where that changes nothing,
      PREFERRED_LEADER_NOT_AVAILABLE.
    - Unclean: only where nobody leads. A replica in sync if there is one, else the first that can serve, which is alone
      in sync from then on; what only the others had is lost. If nobody can serve, ELIGIBLE_LEADERS_NOT_AVAILABLE.
    - A partition that has its leader as wanted is ELECTION_NOT_NEEDED, an unknown one UNKNOWN_TOPIC_OR_PARTITION.
    - A kind of election that there is not is INVALID_REQUEST, elections in more than 10000 partitions at once are
      POLICY_VIOLATION, at the top and for each partition named.
    - A success is answered when the leaders are committed, and this broker leads what it was elected for.

Version notes
    - Version 0 elects preferred leaders only and has no top-level error code.

Not done
    - Throttling.
    - Eligible leader replicas (KIP-966) are not kept, so none of them is elected.
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
    """Have the controller elect, and wait until this broker knows."""
    asked = request.topic_partitions
    if asked is not None and not asked:
        return ElectLeadersResponse()
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}") from None
    services = context.services
    elected = await services.controller.own().elect_leaders(
        election_type, None if asked is None else [(topic.topic, topic.partitions) for topic in asked]
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
