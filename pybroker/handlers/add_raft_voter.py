"""AddRaftVoter: adds a controller to the voters of the metadata quorum (KIP-853).

Key
    80

Versions
    0-1

Behaviour
    - The leader queries the kraft.version levels of the new controller, waits until it has caught up with the log, and
      commits the new voter set. Then it responds.
    - INCONSISTENT_CLUSTER_ID for another cluster's id; an absent id is accepted.
    - INVALID_REQUEST without a node id and a directory id, without an endpoint of the controllers' listener, and for a
      controller that does not support kraft.version 1.
    - UNSUPPORTED_VERSION if controller.quorum.voters defines the voters. DUPLICATE_VOTER for the node id of a voter.
    - REQUEST_TIMED_OUT while another change is in progress, for an unreachable controller, and for one that does not
      catch up within the request's timeout, or 15 s.
    - A broker forwards it. On controller listeners, controllers that are not the leader return NOT_LEADER_OR_FOLLOWER.

Version notes
    - Version 1: without ack_when_committed, the response does not wait for the commit.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.quorum.voters.voter_set import NO_DIRECTORY, VoterEndpoint, VoterNode
from pybroker.handlers.metadata_log import check_cluster, code_of_leader
from pybroker.handlers.registry import handles
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(_request: AddRaftVoterRequest, _version: int, error: WireError) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=code_of_leader(error.code), error_message=error.message)


@handles(
    AddRaftVoterRequest,
    requires=[of_request(Operation.ALTER, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def add_raft_voter(request: AddRaftVoterRequest, context: RequestContext) -> AddRaftVoterResponse:
    """Pass the request to the quorum's leader."""
    check_cluster(request.cluster_id, context)
    voter = VoterNode(
        request.voter_id,
        request.voter_directory_id or NO_DIRECTORY,
        tuple(VoterEndpoint(one.name, one.host, one.port) for one in request.listeners),
    )
    controller = context.services.controller.own()
    result = await controller.add_voter(voter, request.timeout_ms, waits=request.ack_when_committed)
    return AddRaftVoterResponse(error_code=result.error_code, error_message=result.error_message)
