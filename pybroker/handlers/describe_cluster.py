"""DescribeCluster: returns the cluster's id, controller and brokers.

Key
    60

Versions
    0-2

Behaviour
    - Lists the brokers that have the request's listener, as Metadata does.
    - On a controller listener, lists the registered controllers that have this listener, and the active one (KIP-919).
    - MISMATCHED_ENDPOINT_TYPE for controllers on a broker listener, and for brokers on a controller listener.

Version notes
    - Endpoint type: version 1 and later. Fenced brokers on demand: version 2 and later.

Not done
    - None.
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
from pybroker.security.authorizer import NOT_REQUESTED, authorized_operations
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_response

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError

_BROKERS = 1
_CONTROLLERS = 2
_TYPES = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}


def _failed(_request: DescribeClusterRequest, _version: int, error: WireError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


@handles(
    DescribeClusterRequest,
    requires=[of_response(Operation.DESCRIBE, ResourceType.CLUSTER, when="its authorized operations are asked for")],
    failed=_failed,
    listeners=ListenerRole.BOTH,
)
def describe_cluster(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """Describe the cluster with the endpoints of the request's listener."""
    requested, here = request.endpoint_type, _BROKERS if context.role is ListenerRole.BROKER else _CONTROLLERS
    if requested not in _TYPES:
        raise ApiError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {requested}")
    if requested != here:
        words = (
            f"The request was sent to an endpoint of type {_TYPES[here]}, but we wanted one of type {_TYPES[requested]}"
        )
        raise ApiError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, words)
    if here == _CONTROLLERS:
        return _controllers(request, context)
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
            else NOT_REQUESTED
        ),
    )


def _controllers(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    reached = (
        (controller.id, controller.listeners.get(context.listener))
        for controller in context.image.cluster.controllers.values()
    )
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=context.services.cluster_id,
        controller_id=context.services.controller.leader_id,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=address[0], port=address[1])
            for node_id, address in reached
            if address is not None
        ],
        cluster_authorized_operations=(
            authorized_operations(context, ResourceType.CLUSTER)
            if request.include_cluster_authorized_operations
            else NOT_REQUESTED
        ),
    )
