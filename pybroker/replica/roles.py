"""Which role each replica of this broker has, as an image says it.

Arithmetic on the image. Must not know what a role does; `publisher` puts the plan in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pybroker.metadata.image import PartitionImage, TopicImage


class Leader(NamedTuple):
    """This broker leads the partition."""

    epoch: int
    """The leader epoch."""
    in_sync_replicas: int
    """How many replicas are in sync, the leader among them."""


class Follower(NamedTuple):
    """This broker has a replica of a partition that another one leads, or none."""

    leader: int
    """Broker id of the leader, `NO_LEADER` where there is none."""
    epoch: int
    """The leader epoch: what is fetched from the leader, and refused of an older one."""


Role = Leader | Follower


def plan_role(partition: PartitionImage, node_id: int) -> Role | None:
    """Return the role of a broker's replica, None where it has none."""
    if node_id not in partition.replicas:
        return None
    if partition.leader == node_id:
        return Leader(partition.leader_epoch, len(partition.isr))
    return Follower(partition.leader, partition.leader_epoch)


def plan_roles(topic: TopicImage, node_id: int) -> dict[int, Role]:
    """Return the roles of a broker's replicas of a topic, by partition index."""
    planned = ((index, plan_role(partition, node_id)) for index, partition in topic.partitions.items())
    return {index: role for index, role in planned if role is not None}
