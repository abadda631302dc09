"""RemoveRaftVoter: removes a controller from the voters of the metadata quorum (KIP-853).

Key
    81

Versions
    0-0

Behaviour
    - The response is sent when the new voter set is committed, and on the leader's disk. The leader may be removed, and
      then resigns.
    - INCONSISTENT_CLUSTER_ID for another cluster's id; an absent id is accepted.
    - INVALID_REQUEST without a node id and a directory id, and for the only voter. VOTER_NOT_FOUND for a replica that
      is no voter: another directory id is another replica.
    - UNSUPPORTED_VERSION if controller.quorum.voters defines the voters. REQUEST_TIMED_OUT while another change is in
      progress.
    - A broker forwards it. On controller listeners, controllers that are not the leader return NOT_LEADER_OR_FOLLOWER.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.quorum.voters.voter_set import NO_DIRECTORY
from pybroker.handlers.metadata_log import check_cluster, code_of_leader
from pybroker.handlers.registry import handles
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(_request: RemoveRaftVoterRequest, _version: int, error: WireError) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=code_of_leader(error.code), error_message=error.message)


@handles(
    RemoveRaftVoterRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def remove_raft_voter(request: RemoveRaftVoterRequest, context: RequestContext) -> RemoveRaftVoterResponse:
    """Pass the request to the quorum's leader."""
    check_cluster(request.cluster_id, context)
    controller = context.services.controller.own()
    result = await controller.remove_voter(request.voter_id, request.voter_directory_id or NO_DIRECTORY)
    return RemoveRaftVoterResponse(error_code=result.error_code, error_message=result.error_message)
