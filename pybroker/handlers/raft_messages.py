"""RaftMessages: messages between voters of the metadata quorum.

Key
    10001

Versions
    0-0

Behaviour
    - Handles the messages in their order. Resulting messages are sent on the connections that this node has opened to
      other voters, never on the request's connection.
    - With a dynamic voter set (kraft.version 1), a request may have its sender's endpoint, also a request without
      messages and without a receiver (to_id -1): a leader sends its log to a controller that is not a voter. The
      response has the leader's endpoint.
    - Errors before any message is handled: INCONSISTENT_CLUSTER_ID for a voter of another cluster, INVALID_VOTER_KEY
      for a sender that is no voter or has another directory id, and for messages to another voter.
    - INVALID_REQUEST for a malformed message, or one that contradicts this node's state (an entry that this leader does
      not have, a batch with a wrong checksum). The messages before it are handled.
    - UNSUPPORTED_VERSION in a version 0 response to an unsupported version, so that a voter of another release can log
      the reason, while Kafka would close the connection. Later releases add tagged fields, or a version that a voter
      uses only when all others support it.

Version notes
    - Kafka has no such API; its Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch between voters have the same purpose.

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
"""The version that every release can decode."""


def _failed(_request: RaftMessagesRequest, _version: int, error: WireError) -> RaftMessagesResponse:
    return RaftMessagesResponse(error_code=error.code)


def _unsupported(context: ControllerContext) -> bytes:
    versions = RaftMessagesRequest.__message__.versions
    log.warning(
        "%s at %s sends messages of the metadata quorum in version %d; this node supports versions %d to %d: "
        "the nodes run different releases",
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
    """Pass the messages to this node's voter."""
    voter = context.services.voter
    if voter is None:
        raise ApiError(ErrorCode.INVALID_VOTER_KEY, "this node is not a voter")
    try:
        voter.step(request)
    except QuorumError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
    response = RaftMessagesResponse(leader_id=voter.leader_id, leader_epoch=voter.leader_epoch)
    if voter.is_dynamic and voter.leader_endpoint is not None:
        response.leader_host, response.leader_port = voter.leader_endpoint
    return response
