"""What requests for the metadata log have in common: whether this node may answer them, and who does if not.

Owns the rules that Kafka's `KafkaRaftClient` has for Fetch and FetchSnapshot alike, and the endpoint of the leader.
Must not know what is fetched.
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
    """Where the leader's controller listener is reached."""

    node_id: int
    host: str
    port: int


def is_foreign(cluster_id: str | None, context: RequestContext) -> bool:
    """Return whether a request names another cluster; one that names none is not doubted."""
    return cluster_id is not None and cluster_id != context.services.cluster_id


def check_cluster(cluster_id: str | None, context: RequestContext) -> None:
    """Refuse a request that names another cluster, in Kafka's words."""
    if is_foreign(cluster_id, context):
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{cluster_id}" doesn\'t match the cluster id "{context.services.cluster_id}"',
        )


def code_of_leader(code: int) -> int:
    """Return the code by which a controller that does not lead refuses what only the quorum's leader does."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code == ErrorCode.NOT_CONTROLLER else code


def is_metadata_log(name: str, topic_id: bytes, partition: int) -> bool:
    """Return whether a partition, by the name or by the id of its topic, is the metadata log."""
    return partition == PARTITION and (name == TOPIC_NAME or (not name and topic_id == TOPIC_ID))


def leader_error(voter: Controller | None, epoch: int) -> ErrorCode:
    """Return what keeps this node from answering a request of a follower that knows a leader epoch, -1 for none."""
    if voter is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if 0 <= epoch < voter.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > voter.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if voter.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def leader_of(voter: Controller | None) -> tuple[int, int]:
    """Return node id and epoch of the leader as far as this node knows."""
    return (-1, -1) if voter is None else (voter.leader_id, voter.leader_epoch)


def endpoint_of(leader_id: int, context: ControllerContext) -> LeaderEndpoint | None:
    """Return where a leader is reached, None where that is not known here."""
    own = context.services.voter
    if own is not None and own.is_dynamic:
        is_known = own.leader_id == leader_id and own.leader_endpoint is not None
        return LeaderEndpoint(leader_id, *own.leader_endpoint) if is_known and own.leader_endpoint else None
    for voter in context.services.config.quorum_voters:
        if voter.node_id == leader_id:
            return LeaderEndpoint(*voter)
    return None
