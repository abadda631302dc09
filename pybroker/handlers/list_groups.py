"""ListGroups: lists the groups that this broker coordinates.

Key
    16

Versions
    0-5

Behaviour
    - Every group of the partitions of __consumer_offsets that this broker leads. A client queries all brokers.
    - Filters by state and type, case-insensitively. An unknown state or type matches no group.
    - COORDINATOR_LOAD_IN_PROGRESS while one of the partitions is loading.

Version notes
    - States and their filter since version 4 (KIP-518); types since version 5 (KIP-848).

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import ListGroups
from pybroker.handlers.authorizing import may
from pybroker.handlers.registry import handles
from pybroker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pybroker.security.authorizer import allowed
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.requirements import of_response

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError


def _failed(_request: ListGroupsRequest, _version: int, error: WireError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)


@handles(
    ListGroupsRequest,
    requires=[of_response(Operation.DESCRIBE, ResourceType.GROUP, unless=Operation.DESCRIBE)],
    failed=_failed,
)
async def list_groups(request: ListGroupsRequest, context: BrokerContext) -> ListGroupsResponse:
    """List the groups of all coordinator partitions of this broker."""
    states = frozenset(state.strip().lower() for state in request.states_filter)
    types = frozenset(kind.strip().lower() for kind in request.types_filter)
    listed = await context.services.groups.submit_all(ListGroups(states, types))
    found = [group for groups in listed for group in groups]
    if not allowed(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME, is_requested=False):
        # Groups that the client may not describe are omitted.
        found = [
            one
            for one in found
            if may(context, Operation.DESCRIBE, ResourceType.GROUP, one.group_id, is_requested=False)
        ]
    return ListGroupsResponse(groups=found)
