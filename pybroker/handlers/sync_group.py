"""SyncGroup: a member requests its assignment; the leader sends the assignment of all members.

Key
    14

Versions
    0-5

Behaviour
    - The response is sent when the leader's assignment is committed, or the group rebalances again
      (REBALANCE_IN_PROGRESS).
    - A member that the leader omits gets an empty assignment.
    - Members that do not send it within the group's rebalance timeout are removed, and the group rebalances.
    - Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
      REBALANCE_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - Since version 5, the protocol type and name are sent and must match the group's (KIP-559).

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import InconsistentGroupProtocolError, InvalidGroupIdError
from pybroker.coordinator.group.events import SyncGroup
from pybroker.handlers.registry import handles
from pybroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply

_FIRST_VERSION_WITH_PROTOCOL = 5


def _failed(_request: SyncGroupRequest, _version: int, error: WireError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)


@handles(
    SyncGroupRequest,
    requires=[of_request(Operation.READ, ResourceType.GROUP, select(SyncGroupRequest.group_id))],
    failed=_failed,
)
def sync_group(request: SyncGroupRequest, context: BrokerContext) -> Reply:
    """Pass the request to the group's coordinator."""
    if context.version >= _FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise InconsistentGroupProtocolError
    if not request.group_id:
        raise InvalidGroupIdError
    return context.services.groups.submit(request.group_id, SyncGroup(request))
