"""UpdateRaftVoter: updates a voter's endpoints and its supported levels of kraft.version (KIP-853).

Key
    82

Versions
    0-0

Behaviour
    - The leader appends the update and responds without waiting for the commit. An unchanged voter writes no record.
    - INCONSISTENT_CLUSTER_ID for another cluster's id; an absent id is accepted. FENCED_LEADER_EPOCH,
      UNKNOWN_LEADER_EPOCH and NOT_LEADER_OR_FOLLOWER as in Fetch, with the leader known to this node.
    - INVALID_REQUEST without a directory id, without an endpoint of the controllers' listener, and for levels without
      kraft.version 1. VOTER_NOT_FOUND for a replica that is no voter.
    - UNSUPPORTED_VERSION if controller.quorum.voters defines the voters. REQUEST_TIMED_OUT while another change is in
      progress.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.errors import NotControllerError
from pybroker.controller.quorum.voters.voter_set import NO_DIRECTORY, VoterEndpoint, VoterNode
from pybroker.handlers.metadata_log import endpoint_of, is_foreign, leader_error, leader_of
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError


def _failed(_request: UpdateRaftVoterRequest, _version: int, error: WireError) -> UpdateRaftVoterResponse:
    return UpdateRaftVoterResponse(error_code=error.code)


@handles(
    UpdateRaftVoterRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def update_raft_voter(request: UpdateRaftVoterRequest, context: ControllerContext) -> UpdateRaftVoterResponse:
    """Update the voter, and return the leader known to this node."""
    code = await _decide(request, context)
    leader_id, epoch = leader_of(context.services.voter)
    leader = CurrentLeader(leader_id=leader_id, leader_epoch=epoch)
    endpoint = endpoint_of(leader_id, context)
    if endpoint is not None:
        leader.host, leader.port = endpoint.host, endpoint.port
    return UpdateRaftVoterResponse(error_code=code, current_leader=leader)


async def _decide(request: UpdateRaftVoterRequest, context: ControllerContext) -> ErrorCode:
    voter = context.services.voter
    if is_foreign(request.cluster_id, context):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = leader_error(voter, request.current_leader_epoch)
    if error or voter is None:
        return error
    supported = request.kraft_version_feature
    node = VoterNode(
        request.voter_id,
        request.voter_directory_id or NO_DIRECTORY,
        tuple(VoterEndpoint(one.name, one.host, one.port) for one in request.listeners),
        (supported.min_supported_version, supported.max_supported_version),
    )
    try:
        return await voter.voters.update(node)
    except NotControllerError:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
