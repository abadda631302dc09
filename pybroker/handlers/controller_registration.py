"""ControllerRegistration: registers a controller's endpoints and supported features (KIP-919).

Key
    70

Versions
    0-0

Behaviour
    - The response is sent when the registration is committed. An unchanged registration writes no record.
    - The registration describes a controller. The quorum's own configuration defines the voters.
    - INVALID_REGISTRATION without listeners, UNSUPPORTED_VERSION below metadata.version 15.
    - Served by the active controller on controller listeners; other controllers return NOT_CONTROLLER.

Version notes
    - None.

Not done
    - zk_migration_ready is ignored: a migration from ZooKeeper is not supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError


def _failed(_request: ControllerRegistrationRequest, _version: int, error: WireError) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(error_code=error.code, error_message=error.message)


@handles(
    ControllerRegistrationRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def controller_registration(
    request: ControllerRegistrationRequest, context: ControllerContext
) -> ControllerRegistrationResponse:
    """Pass the request to the controller."""
    if not request.listeners:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, "No listeners specified for the controller")
    result = await context.services.controller.own().register_controller(
        request.controller_id,
        incarnation_id=request.incarnation_id,
        listeners={one.name: (one.host, one.port) for one in request.listeners},
        security_protocols={one.name: one.security_protocol for one in request.listeners},
        features={one.name: (one.min_supported_version, one.max_supported_version) for one in request.features},
    )
    return ControllerRegistrationResponse(error_code=result.error_code, error_message=result.error_message)
