"""AllocateProducerIds: allocates a block of unique producer ids to a broker (KIP-730).

Key
    67

Versions
    0-0

Behaviour
    - Each request gets the next block of 1000 ids, even if the previous block is unused.
    - STALE_BROKER_EPOCH for a broker that is not registered with this epoch.
    - Served by the active controller on controller listeners; other controllers return NOT_CONTROLLER.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError


def _failed(_request: AllocateProducerIdsRequest, _version: int, error: WireError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error.code)


@handles(
    AllocateProducerIdsRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def allocate_producer_ids(
    request: AllocateProducerIdsRequest, context: ControllerContext
) -> AllocateProducerIdsResponse:
    """Pass the request to the controller."""
    block = await context.services.controller.own().allocate_producer_ids(request.broker_id, request.broker_epoch)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))
