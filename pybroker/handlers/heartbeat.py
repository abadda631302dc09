"""Heartbeat: renews the session of a member of a classic group.

Key
    12

Versions
    0-4

Behaviour
    - REBALANCE_IN_PROGRESS while the group rebalances, so that the member rejoins. Its session is renewed also then.
    - Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, NOT_COORDINATOR.

Version notes
    - Version 3 and later have the instance id of a static member (KIP-345).

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import InvalidGroupIdError
from pybroker.coordinator.group.events import Heartbeat
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply


def _failed(_request: HeartbeatRequest, _version: int, error: WireError) -> HeartbeatResponse:
    # As in Kafka: no session expires while the coordinator is loading, so this is not an error.
    loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)


@handles(
    HeartbeatRequest,
    requires=[of_request(Operation.READ, ResourceType.GROUP, select(HeartbeatRequest.group_id))],
    failed=_failed,
)
def heartbeat(request: HeartbeatRequest, context: BrokerContext) -> Reply:
    """Renew the member's session."""
    if not request.group_id:
        raise InvalidGroupIdError
    return context.services.groups.submit(request.group_id, Heartbeat(request))
