"""Whose messages are taken: those of a voter of this quorum, in its directory, that are for this voter.

Owns the check of a frame's head and its sentences; the messages in it are checked one by one where they are decoded
(`native/quorum/src/message.rs`). Nothing is taken of a frame that fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.errors import ForeignClusterError, UnknownVoterError

if TYPE_CHECKING:
    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.protocol.messages.raft_messages import RaftMessagesRequest

_UNKNOWN_DIRECTORY = bytes(16)


def check_frame(request: RaftMessagesRequest, settings: QuorumSettings) -> None:
    """Raise `ForeignClusterError` or `UnknownVoterError` for messages that this voter must not take."""
    if request.cluster_id != settings.cluster_id:
        raise ForeignClusterError(
            f"messages of a voter of cluster {request.cluster_id!r}; this one belongs to {settings.cluster_id!r}"
        )
    if request.to_id != settings.node_id:
        raise UnknownVoterError(f"messages for voter {request.to_id}; this one is {settings.node_id}")
    if request.from_id == settings.node_id or request.from_id not in settings.voters:
        raise UnknownVoterError(
            f"messages of node {request.from_id}, which is none of the other voters of {list(settings.voters)}"
        )
    for address in settings.addresses:
        known = address.node_id == request.from_id and address.directory_id != _UNKNOWN_DIRECTORY
        if known and request.from_directory_id != address.directory_id:
            raise UnknownVoterError(
                f"messages of voter {request.from_id} from directory {request.from_directory_id.hex()}; its directory "
                f"is {address.directory_id.hex()}"
            )
