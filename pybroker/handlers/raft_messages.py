"""RaftMessages: messages of one voter of the metadata quorum to another.

Key
    10001

Versions
    0-0

Behaviour
    - Takes the messages in their order; what they lead to goes to the other voters by the connections that this node
      has opened to them, never back on this one.
    - Where voters come and go (kraft.version 1), a frame may say where its sender is reached, also one without messages
      that is for nobody by name (to_id -1): a leader sends its log to a controller that does not vote. The answer says
      where the leader is reached.
    - Errors, before anything is taken: INCONSISTENT_CLUSTER_ID for a voter of another cluster, INVALID_VOTER_KEY for a
      node that is no voter, in another directory, or for messages that are for another voter.
    - INVALID_REQUEST: a message that is none, or that says what cannot be (an entry that this leader does not have, a
      batch with a wrong checksum). Those before it are taken.
    - UNSUPPORTED_VERSION, in the form of version 0 whatever was asked: a voter of another release learns why its
      messages are not taken, where Kafka would close the connection. What a later release adds goes into tagged fields,
      or into a version that a voter uses when all others serve it.

Version notes
    - Kafka has no such API; its Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch among voters carry the same.

Not done
    - None.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.controller.errors import QuorumError
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import response_prefix
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.raft_messages import RaftMessagesRequest, RaftMessagesResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError

log = logging.getLogger("pybroker.handlers")

_OLDEST = 0
"""The version that every release can read."""


def _failed(_request: RaftMessagesRequest, _version: int, error: WireError) -> RaftMessagesResponse:
    return RaftMessagesResponse(error_code=error.code)


def _unsupported(context: ControllerContext) -> bytes:
    versions = RaftMessagesRequest.__message__.versions
    log.warning(
        "%s at %s sends messages of the metadata quorum in version %d; this node supports versions %d to %d: "
        "the releases differ",
        context.client_id or "a voter",
        context.origin.peer_host,
        context.version,
        versions.first,
        versions.last,
    )
    refusal = RaftMessagesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return response_prefix(RaftMessagesRequest.__message__.api_key or 0, _OLDEST) + encode(refusal, _OLDEST)


@handles(
    RaftMessagesRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    unsupported=_unsupported,
    listeners=ListenerRole.CONTROLLER,
)
def raft_messages(request: RaftMessagesRequest, context: ControllerContext) -> RaftMessagesResponse:
    """Step the voter of this node."""
    voter = context.services.voter
    if voter is None:
        raise ApiError(ErrorCode.INVALID_VOTER_KEY, "this node is no voter")
    try:
        voter.step(request)
    except QuorumError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
    response = RaftMessagesResponse(leader_id=voter.leader_id, leader_epoch=voter.leader_epoch)
    if voter.is_dynamic and voter.leader_endpoint is not None:
        response.leader_host, response.leader_port = voter.leader_endpoint
    return response
