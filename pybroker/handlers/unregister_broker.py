"""UnregisterBroker: the cluster forgets a broker that does not come back (KIP-631).

Key
    64

Versions
    0-0

Behaviour
    - A success is answered when it is committed: the broker is no leader and, where others are, not in sync any more.
      It stays a replica of its partitions until they are reassigned. One that is alive registers anew.
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
    """Have the machine decide."""
    result = await context.services.controller.own().unregister_broker(request.broker_id)
    return UnregisterBrokerResponse(error_code=result.error_code, error_message=result.error_message)
