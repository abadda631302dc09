"""BrokerHeartbeat: renews a broker's session, and fences, unfences or shuts it down at its request (KIP-631).

Key
    63

Versions
    0-2

Behaviour
    - The broker's session is renewed. A fenced broker that does not request to be fenced is unfenced when it has
      applied its own registration.
    - A broker that requests a shutdown may stop when it leads no partition, or is fenced.
    - Partitions in failed log directories of the request get another leader (KIP-858). Heartbeats may repeat them.
    - BROKER_ID_NOT_REGISTERED, and STALE_BROKER_EPOCH for another incarnation.
    - The connection is monitored: if it is closed, and the broker's port refuses connections, the broker is dead
      (docs/adr/0043-a-closed-connection-and-a-refused-port-are-a-death.md).
    - Served by the active controller on controller listeners; other controllers return NOT_CONTROLLER.

Version notes
    - Failed log directories: version 1 and later. Cordoned ones (KIP-1066): version 2.

Not done
    - Cordoned log directories are ignored: metadata.version 25 has no record of them.
    - A broker may stop as soon as it leads no partition. Kafka also waits until the other brokers have applied the new
      leaders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError


def _failed(_request: BrokerHeartbeatRequest, _version: int, error: WireError) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=error.code)


@handles(
    BrokerHeartbeatRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def broker_heartbeat(request: BrokerHeartbeatRequest, context: ControllerContext) -> BrokerHeartbeatResponse:
    """Pass failed directories to the controller first, then the heartbeat, so that it elects no leader there."""
    broker_id, epoch, controller = request.broker_id, request.broker_epoch, context.services.controller.own()
    if request.offline_log_dirs:
        failed = await controller.fail_log_directories(broker_id, epoch, request.offline_log_dirs)
        if failed.error_code:
            return BrokerHeartbeatResponse(error_code=failed.error_code)
    result = await controller.heartbeat(
        broker_id,
        epoch,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        metadata_offset=request.current_metadata_offset,
    )
    if result.error_code:
        return BrokerHeartbeatResponse(error_code=result.error_code)
    context.services.failure_detector.note(context.origin.connection, broker_id, epoch)
    return BrokerHeartbeatResponse(
        is_caught_up=result.is_caught_up, is_fenced=result.is_fenced, should_shut_down=result.should_shut_down
    )
