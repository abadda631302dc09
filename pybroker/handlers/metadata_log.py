"""Shared by requests for the metadata log: the check that this node is the leader, and the leader's endpoint.

Owns the rules that Kafka's `KafkaRaftClient` has for both Fetch and FetchSnapshot. Must not know the fetched data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.controller.quorum.batches import TOPIC_NAME
from pybroker.handlers.errors import ApiError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pybroker.controller.service import Controller
    from pybroker.handlers.context import ControllerContext, RequestContext

TOPIC_ID = (1).to_bytes(16)
"""Kafka's `Uuid.METADATA_TOPIC_ID`."""
PARTITION = 0


class LeaderEndpoint(NamedTuple):
    """The endpoint of the leader's controller listener."""

    node_id: int
    host: str
    port: int


def is_foreign(cluster_id: str | None, context: RequestContext) -> bool:
    """Return whether a request is for another cluster. An absent cluster id is accepted."""
    return cluster_id is not None and cluster_id != context.services.cluster_id


def check_cluster(cluster_id: str | None, context: RequestContext) -> None:
    """Raise ApiError for a request for another cluster, with Kafka's message."""
    if is_foreign(cluster_id, context):
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{cluster_id}" doesn\'t match the cluster id "{context.services.cluster_id}"',
        )


def code_of_leader(code: int) -> int:
    """Return the error code, with NOT_CONTROLLER replaced by NOT_LEADER_OR_FOLLOWER."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code == ErrorCode.NOT_CONTROLLER else code


def is_metadata_log(name: str, topic_id: bytes, partition: int) -> bool:
    """Return whether a partition, by its topic name or topic id, is the metadata log."""
    return partition == PARTITION and (name == TOPIC_NAME or (not name and topic_id == TOPIC_ID))


def leader_error(voter: Controller | None, epoch: int) -> ErrorCode:
    """Return the error for a follower's request with its leader epoch (-1: none), NONE if this node is the leader."""
    if voter is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if 0 <= epoch < voter.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > voter.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if voter.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def leader_of(voter: Controller | None) -> tuple[int, int]:
    """Return the leader's node id and epoch as known to this node."""
    return (-1, -1) if voter is None else (voter.leader_id, voter.leader_epoch)


def endpoint_of(leader_id: int, context: ControllerContext) -> LeaderEndpoint | None:
    """Return the endpoint of a leader, None if it is unknown."""
    own = context.services.voter
    if own is not None and own.is_dynamic:
        is_known = own.leader_id == leader_id and own.leader_endpoint is not None
        return LeaderEndpoint(leader_id, *own.leader_endpoint) if is_known and own.leader_endpoint else None
    for voter in context.services.config.quorum_voters:
        if voter.node_id == leader_id:
            return LeaderEndpoint(*voter)
    return None
