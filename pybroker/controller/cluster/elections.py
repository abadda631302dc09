"""Who leads a partition when brokers come and go.

Owns the arithmetic alone (KIP-631, clean elections only)::

    isr after a broker left    = isr - {broker}, or isr itself where nobody else would be left
    leader                     = the first replica that is in the isr and usable, or nobody

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.metadata.image import NO_LEADER
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pybroker.metadata.image import MetadataImage, PartitionImage


def elect(partition: PartitionImage, usable: Callable[[int], bool]) -> int:
    """Return the leader that the partition has when only `usable` brokers can lead."""
    if partition.leader in partition.isr and usable(partition.leader):
        return partition.leader
    in_sync = (replica for replica in partition.replicas if replica in partition.isr)
    return next((replica for replica in in_sync if usable(replica)), NO_LEADER)


def after_leaving(image: MetadataImage, broker: int, usable: Callable[[int], bool]) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of partitions when `broker` cannot lead any more; `usable` says no to it already."""
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            if broker not in partition.isr:
                continue
            isr = [replica for replica in partition.isr if replica != broker]
            leader = partition.leader if partition.leader != broker else elect(partition, usable)
            change = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id)
            if isr:
                change.isr = isr
            if leader != partition.leader:
                change.leader = leader
            if isr or leader != partition.leader:
                yield change


def after_returning(image: MetadataImage, usable: Callable[[int], bool]) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of partitions without leader, now that `usable` brokers are more."""
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            if partition.leader == NO_LEADER:
                leader = elect(partition, usable)
                if leader != NO_LEADER:
                    yield PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=leader)


def leads_anything(image: MetadataImage, broker: int) -> bool:
    """Tell whether the broker leads a partition."""
    return any(
        partition.leader == broker for topic in image.topics.by_id.values() for partition in topic.partitions.values()
    )
