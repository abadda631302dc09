"""Heartbeat: a member of a classic group lives.

Key
    12

Versions
    0-4

Behaviour
    - While the group rebalances the answer is REBALANCE_IN_PROGRESS, which asks the member to join again; its session
      begins anew all the same.
    - Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, NOT_COORDINATOR.

Version notes
    - Version 3 and later name the instance id of a static member (KIP-345).

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
    # While the coordinator is loaded no session ends, so all is well (as in Kafka).
    loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)


@handles(
    HeartbeatRequest,
    requires=[of_request(Operation.READ, ResourceType.GROUP, select(HeartbeatRequest.group_id))],
    failed=_failed,
)
def heartbeat(request: HeartbeatRequest, context: BrokerContext) -> Reply:
    """Begin the member's session anew."""
    if not request.group_id:
        raise InvalidGroupIdError
    return context.services.groups.submit(request.group_id, Heartbeat(request))
