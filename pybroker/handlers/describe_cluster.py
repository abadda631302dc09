"""DescribeCluster: the cluster's id, controller and brokers.

Key
    60

Versions
    0-2

Behaviour
    - Lists the brokers that the listener of the request can reach, as Metadata does.
    - Asking a broker's listener for controllers is MISMATCHED_ENDPOINT_TYPE (KIP-919).

Version notes
    - Endpoint type: version 1 and later. Fenced brokers on demand: version 2 and later.

Not done
    - Rights: authorized operations name all of them.
    - Throttling: throttle_time_ms is always 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.handlers.topic_metadata import broker_addresses, controller_shown
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from pybroker.security.authorizer import NOT_ASKED, authorized_operations
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_answer

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError

_BROKERS = 1
_CONTROLLERS = 2


def _failed(_request: DescribeClusterRequest, _version: int, error: WireError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


@handles(
    DescribeClusterRequest,
    requires=[of_answer(Operation.DESCRIBE, ResourceType.CLUSTER, when="its authorized operations are asked for")],
    failed=_failed,
    listeners=ListenerRole.BOTH,
)
def describe_cluster(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """Describe the cluster as one listener sees it."""
    if request.endpoint_type == _CONTROLLERS:
        raise ApiError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "The request was sent to an endpoint of type BROKER")
    if request.endpoint_type != _BROKERS:
        raise ApiError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    return DescribeClusterResponse(
        cluster_id=context.services.cluster_id,
        controller_id=controller_shown(context, broker_addresses(context)),
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.node_id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for broker in broker_addresses(context, fenced=request.include_fenced_brokers)
        ],
        cluster_authorized_operations=(
            authorized_operations(context, ResourceType.CLUSTER)
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )
