"""Checks the sender of messages: a replica of this cluster, with its directory id, and this node as the receiver.

Owns the check of a frame's header and its error messages. `native/quorum/src/message.rs` checks each message when it is
decoded. A frame that fails is rejected as a whole.

If the configuration contains the voters, messages of all other nodes are rejected. If the log contains the voter set, a
replica may know fewer voters than the others: it accepts messages of any replica, whose key in each message contains
the directory id. The library rejects messages that are addressed to another key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.errors import ForeignClusterError, UnknownVoterError
from pybroker.controller.quorum.voters.voter_set import NO_DIRECTORY, key_of

if TYPE_CHECKING:
    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.protocol.messages.raft_messages import RaftMessagesRequest

_ANYBODY = -1


def check_frame(request: RaftMessagesRequest, settings: QuorumSettings, *, is_dynamic: bool = False) -> int:
    """Return the key of the replica that sent a frame.

    Raises `ForeignClusterError` or `UnknownVoterError` for messages that this voter must reject.
    """
    if request.cluster_id != settings.cluster_id:
        raise ForeignClusterError(
            f"messages of a voter of cluster {request.cluster_id!r}; this voter belongs to {settings.cluster_id!r}"
        )
    is_announcement = is_dynamic and request.to_id == _ANYBODY and not request.messages
    if request.to_id != settings.node_id and not is_announcement:
        raise UnknownVoterError(f"messages for voter {request.to_id}; this voter is {settings.node_id}")
    if is_dynamic:
        return _any_replica(request, settings)
    if request.from_id == settings.node_id or request.from_id not in settings.voters:
        raise UnknownVoterError(
            f"messages of node {request.from_id}, which is none of the other voters of {list(settings.voters)}"
        )
    for address in settings.addresses:
        known = address.node_id == request.from_id and address.directory_id != NO_DIRECTORY
        if known and request.from_directory_id != address.directory_id:
            raise UnknownVoterError(
                f"messages of voter {request.from_id} from directory {request.from_directory_id.hex()}; its directory "
                f"is {address.directory_id.hex()}"
            )
    return request.from_id


def _any_replica(request: RaftMessagesRequest, settings: QuorumSettings) -> int:
    if request.from_id < 0 or request.from_directory_id == NO_DIRECTORY:
        raise UnknownVoterError(
            f"messages of node {request.from_id} from directory {request.from_directory_id.hex()}: expected a node id "
            "and the id of the directory of its metadata log"
        )
    if request.from_id == settings.node_id:
        raise UnknownVoterError(f"messages of node {request.from_id}, which is the id of this node")
    return key_of(request.from_id, request.from_directory_id)
