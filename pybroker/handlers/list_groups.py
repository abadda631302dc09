"""ListGroups: the groups that this broker coordinates.

Key
    16

Versions
    0-5

Behaviour
    - Every group of every partition of __consumer_offsets that this broker leads; a client asks all brokers.
    - Filters by state and type, in any letter case; a name that is no state or type matches nothing.
    - While one of the partitions is being loaded the answer is COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - States, and a filter by them, from version 4 on (KIP-518); types from version 5 on (KIP-848).

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import ListGroups
from pybroker.handlers.judging import may
from pybroker.handlers.registry import handles
from pybroker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pybroker.security.authorizer import allowed
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.requirements import of_answer

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError


def _failed(_request: ListGroupsRequest, _version: int, error: WireError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)


@handles(
    ListGroupsRequest,
    requires=[of_answer(Operation.DESCRIBE, ResourceType.GROUP, unless=Operation.DESCRIBE)],
    failed=_failed,
)
async def list_groups(request: ListGroupsRequest, context: BrokerContext) -> ListGroupsResponse:
    """List what all coordinators here know."""
    states = frozenset(state.strip().lower() for state in request.states_filter)
    types = frozenset(kind.strip().lower() for kind in request.types_filter)
    listed = await context.services.groups.submit_all(ListGroups(states, types))
    found = [group for groups in listed for group in groups]
    if not allowed(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME, is_asked=False):
        # What may not be described is not named.
        found = [
            one for one in found if may(context, Operation.DESCRIBE, ResourceType.GROUP, one.group_id, is_asked=False)
        ]
    return ListGroupsResponse(groups=found)
