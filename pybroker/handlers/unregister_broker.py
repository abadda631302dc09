"""UnregisterBroker: removes the registration of a broker (KIP-631).

Key
    64

Versions
    0-0

Behaviour
    - The response is sent when the removal is committed. The broker is then no leader, and not in the ISR if there are
      other in-sync replicas. It stays a replica of its partitions until they are reassigned. A live broker registers
      again when it is restarted.
    - BROKER_ID_NOT_REGISTERED.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.registry import handles
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(_request: UnregisterBrokerRequest, _version: int, error: WireError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)


@handles(
    UnregisterBrokerRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def unregister_broker(request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse:
    """Pass the request to the controller."""
    result = await context.services.controller.own().unregister_broker(request.broker_id)
    return UnregisterBrokerResponse(error_code=result.error_code, error_message=result.error_message)
