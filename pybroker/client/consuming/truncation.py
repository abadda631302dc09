"""Validation of a consumer's positions against the leader epochs of the log (KIP-320).

A new leader may lack records that the old one returned. If the epoch of the last record before the position ends, in
the leader's log, below the position, the log was truncated. Owns the OffsetForLeaderEpoch request and the outcome,
as in Kafka's consumer: with an `auto.offset.reset` reading continues at the divergent offset, without one the
program gets LogTruncationError. Must not know records or groups.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from pybroker.client.administration.groups import OffsetAndMetadata, Offsets
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.group_offsets import by_topic
from pybroker.client.errors import BrokerError, ConnectionLostError, UnreachableError
from pybroker.client.network.cluster import Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.network.leaders import find_leaders
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import offset_for_leader_epoch as epochs

log = logging.getLogger("pybroker.client")

_API_KEY = 23
_FIRST_VERSION_FOR_CONSUMERS = 3
"""From this version on the request requires only the READ operation on the topic."""
_CONSUMER = -1
_UNKNOWN = -1


@dataclass(slots=True)
class TruncationPlan:
    """The outcome of the validation of positions."""

    begin: Offsets = field(default_factory=dict)
    """Valid positions: unchanged, or the divergent offset."""
    reset: list[TopicPartition] = field(default_factory=list)
    """The log has no such epoch: `auto.offset.reset` defines the position."""
    later: set[TopicPartition] = field(default_factory=set)
    """Positions whose validation must be retried."""
    truncated: dict[TopicPartition, tuple[OffsetAndMetadata, OffsetAndMetadata | None]] = field(default_factory=dict)
    """Truncated positions without a reset: by partition, the position and the divergent offset (None: unknown)."""


async def check_positions(cluster: Cluster, positions: Offsets, *, resets: bool) -> TruncationPlan:
    """Validate positions with a leader epoch by OffsetForLeaderEpoch; others are unchanged. Raises BrokerError."""
    plan = TruncationPlan(begin={p: at for p, at in positions.items() if at.leader_epoch < 0})
    requested = {partition: at for partition, at in positions.items() if at.leader_epoch >= 0}
    if not requested:
        return plan
    try:
        leaders = await find_leaders(cluster, requested)
        plan.later.update(leaders.refused)
        for node, partitions in sorted(leaders.by_node.items()):
            of_node = {partition: (requested[partition], leaders.epochs[partition]) for partition in partitions}
            async with cluster.node(node) as connection:
                await _query(connection, of_node, plan, resets)
    except (ConnectionLostError, UnreachableError):
        plan.later.update(requested.keys() - plan.begin.keys() - plan.truncated.keys() - set(plan.reset))
    return plan


async def _query(
    connection: Connection,
    requested: Mapping[TopicPartition, tuple[OffsetAndMetadata, int]],
    plan: TruncationPlan,
    resets: bool,
) -> None:
    if not connection.serves(_API_KEY, _FIRST_VERSION_FOR_CONSUMERS):
        plan.begin.update({partition: at for partition, (at, _) in requested.items()})
        return
    request = epochs.OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[
            epochs.OffsetForLeaderTopic(
                topic=topic,
                partitions=[_question(index, *requested[TopicPartition(topic, index)]) for index in indexes],
            )
            for topic, indexes in by_topic(requested).items()
        ],
    )
    response = await connection.query(request, epochs.OffsetForLeaderEpochResponse)
    ends = {TopicPartition(t.topic, end.partition): end for t in response.topics for end in t.partitions}
    for partition, (at, _) in requested.items():
        end = ends.get(partition)
        if end is None or end.error_code:
            _put_off(connection, partition, end, plan)
        else:
            decide(plan, partition, at, end, resets)


def decide(
    plan: TruncationPlan, partition: TopicPartition, at: OffsetAndMetadata, end: epochs.EpochEndOffset, resets: bool
) -> None:
    """Add the outcome of one position from the response."""
    if _UNKNOWN in (end.end_offset, end.leader_epoch):
        if resets:
            plan.reset.append(partition)
        else:
            plan.truncated[partition] = at, None
    elif end.end_offset >= at.offset:
        plan.begin[partition] = at
    else:
        parts = OffsetAndMetadata(end.end_offset, leader_epoch=end.leader_epoch)
        if resets:
            log.warning(
                "Truncation detected for %s-%d at offset %d (leader epoch %d): continuing at offset %d (epoch %d)",
                partition.topic,
                partition.partition,
                at.offset,
                at.leader_epoch,
                parts.offset,
                parts.leader_epoch,
            )
            plan.begin[partition] = parts
        else:
            plan.truncated[partition] = at, parts


def _question(index: int, at: OffsetAndMetadata, current_epoch: int) -> epochs.OffsetForLeaderPartition:
    return epochs.OffsetForLeaderPartition(
        partition=index, current_leader_epoch=current_epoch, leader_epoch=at.leader_epoch
    )


def _put_off(
    connection: Connection, partition: TopicPartition, end: epochs.EpochEndOffset | None, plan: TruncationPlan
) -> None:
    if end is not None and not ErrorCode(end.error_code).retriable:
        what = f"end of the leader epoch of {partition}"
        raise BrokerError.of(connection.server, what, end.error_code, None)
    plan.later.add(partition)
