"""RaftMessages: messages of one voter of the metadata quorum to another.

Key
    10001

Versions
    0-0

Behaviour
    - Takes the messages in their order; what they lead to goes to the other voters by the connections that this node
      has opened to them, never back on this one.
    - Errors, before anything is taken: INCONSISTENT_CLUSTER_ID for a voter of another cluster, INVALID_VOTER_KEY for a
      node that is no voter, in another directory, or for messages that are for another voter.
    - INVALID_REQUEST: a message that is none, or that says what cannot be (an entry that this leader does not have, a
      batch with a wrong checksum). Those before it are taken.

Version notes
    - Kafka has no such API; its Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch among voters carry the same.

Not done
    - Rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.errors import QuorumError
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest, RaftMessagesResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(_request: RaftMessagesRequest, _version: int, error: WireError) -> RaftMessagesResponse:
    return RaftMessagesResponse(error_code=error.code)


@handles(
    RaftMessagesRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
def raft_messages(request: RaftMessagesRequest, context: RequestContext) -> RaftMessagesResponse:
    """Step the voter of this node."""
    voter = context.services.voter
    if voter is None:
        raise ApiError(ErrorCode.INVALID_VOTER_KEY, "this node is no voter")
    try:
        voter.step(request)
    except QuorumError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return RaftMessagesResponse(leader_id=voter.leader_id, leader_epoch=voter.leader_epoch)
