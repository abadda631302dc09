"""BrokerRegistration: registers a starting broker and assigns its broker epoch (KIP-631).

Key
    62

Versions
    0-4

Behaviour
    - A success returns the broker's epoch, which is greater than any before. The broker is fenced until a heartbeat
      requests otherwise.
    - DUPLICATE_BROKER_REGISTRATION if another live broker is registered with this id. It is live until its session
      expires, or its connection is closed.
    - INCONSISTENT_CLUSTER_ID for another cluster's broker. INVALID_REGISTRATION for an id below 0, without listeners or
      log directories, or with a directory of another broker, a duplicate one, or a reserved id. UNSUPPORTED_VERSION if
      the broker does not support a feature at its finalized level. BROKER_ID_NOT_REGISTERED in a migration from
      ZooKeeper.
    - Served by the active controller on controller listeners; other controllers return NOT_CONTROLLER.

Version notes
    - Log directories: since version 2, so earlier versions are rejected. The epoch before a clean shutdown: since
      version 3; with it, the broker's replicas have lost no records (KIP-966).

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError


def _failed(_request: BrokerRegistrationRequest, _version: int, error: WireError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=error.code)


@handles(
    BrokerRegistrationRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def broker_registration(
    request: BrokerRegistrationRequest, context: ControllerContext
) -> BrokerRegistrationResponse:
    """Reject a broker of another cluster, and pass the others to the controller."""
    cluster_id = context.services.cluster_id
    if request.cluster_id != cluster_id:
        message = f"Expected cluster ID {cluster_id}, but got cluster ID {request.cluster_id}"
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    if request.is_migrating_zk_broker:
        message = "Controller does not support registering ZK brokers."
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if not request.log_dirs:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    registered = await context.services.controller.own().register_broker(
        request.broker_id,
        incarnation_id=request.incarnation_id,
        listeners={one.name: (one.host, one.port) for one in request.listeners},
        security_protocols={one.name: one.security_protocol for one in request.listeners},
        rack=request.rack,
        log_dirs=tuple(request.log_dirs),
        features={one.name: (one.min_supported_version, one.max_supported_version) for one in request.features},
        previous_broker_epoch=request.previous_broker_epoch,
    )
    if not registered.error_code:
        context.services.failure_detector.note(context.origin.connection, request.broker_id, registered.broker_epoch)
    return BrokerRegistrationResponse(error_code=registered.error_code, broker_epoch=registered.broker_epoch)
