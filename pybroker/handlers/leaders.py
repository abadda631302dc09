"""Lookup of a partition for a request that only its leader serves.

Owns the order of the errors: unknown partition, failed log directory, not the leader, older or newer leader epoch. Used
by the APIs that read one partition of a log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.storage.native import Partition

_LEADER = "leader"


def leading_partition(topic: str, index: int, known_epoch: int, context: BrokerContext) -> Partition:
    """Return the open partition if this broker is its leader at the client's leader epoch (-1: any).

    Raises ApiError.
    """
    described = context.image.topics.by_name.get(topic)
    known = None if described is None else described.partitions.get(index)
    if known is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if context.services.partitions.is_lost(topic, index):
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    partition = context.services.partitions.get(topic, index)
    if partition is None or known.leader != context.services.config.node_id:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if known_epoch >= 0:
        if known_epoch < known.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        if known_epoch > known.leader_epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)
    return partition


def still_leads(partition: Partition, epoch: int) -> None:
    """Raise ApiError unless this broker is still leader of the partition in `epoch`.

    A role may change while a handler runs. Values that are read between reading `epoch` and this check belong to that
    epoch.
    """
    if partition.role != _LEADER or partition.leader_epoch != epoch:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
