"""The role of each replica of this broker in an image.

Computed from the image. Must not know what a role does; `publisher` applies the roles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.metadata.image import NO_LEADER

if TYPE_CHECKING:
    from pybroker.metadata.image import BrokerRegistration, ClusterImage, PartitionImage, TopicImage


class Leader(msgspec.Struct, frozen=True):
    """This broker leads the partition."""

    epoch: int
    """The leader epoch."""
    followers: tuple[tuple[int, bool], ...]
    """The other replicas: broker id, and whether it is in sync."""
    partition_epoch: int = 0
    """Incremented by each change of the partition."""


class Follower(msgspec.Struct, frozen=True):
    """This broker has a replica of a partition that another one leads."""

    leader: int
    """Broker id of the leader."""
    epoch: int
    """The leader epoch of fetch requests; a leader with an older epoch rejects them."""


class NoRole(msgspec.Struct, frozen=True):
    """The partition has no leader, or this broker has no replica of it."""

    epoch: int
    """The leader epoch."""


Role = Leader | Follower | NoRole


def may_be_in_sync(broker: BrokerRegistration | None) -> bool:
    """Return whether a broker's replicas may be in sync: it is neither fenced nor stopping (KIP-841)."""
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def plan_eligible(cluster: ClusterImage) -> list[int]:
    """Return the ids of the brokers whose replicas may be in sync, in ascending order."""
    return [broker_id for broker_id, _ in plan_registered(cluster)]


def plan_registered(cluster: ClusterImage) -> list[tuple[int, int]]:
    """Return the brokers of `plan_eligible` with their broker epochs."""
    return sorted((broker.id, broker.epoch) for broker in cluster.brokers.values() if may_be_in_sync(broker))


def plan_role(partition: PartitionImage, node_id: int) -> Role:
    """Return the role of a broker in a partition."""
    if node_id not in partition.replicas or partition.leader == NO_LEADER:
        return NoRole(partition.leader_epoch)
    if partition.leader == node_id:
        others = (replica for replica in partition.replicas if replica != node_id)
        followers = tuple((replica, replica in partition.isr) for replica in others)
        return Leader(partition.leader_epoch, followers, partition.partition_epoch)
    return Follower(partition.leader, partition.leader_epoch)


def plan_roles(topic: TopicImage, node_id: int) -> dict[int, Role]:
    """Return the roles of a broker's replicas of a topic, by partition index."""
    return {
        index: plan_role(partition, node_id)
        for index, partition in topic.partitions.items()
        if node_id in partition.replicas
    }
