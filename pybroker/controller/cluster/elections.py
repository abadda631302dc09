"""Who leads a partition when brokers come and go, and when somebody asks for another leader.

Owns the arithmetic alone (KIP-631; only clean elections happen unasked)::

    isr after a broker left    = isr - {broker}, or isr itself where nobody else would be left
    leader                     = the first replica that is in the isr and usable, or nobody
    preferred leader           = the first replica if it is in the isr and usable, or the leader as above
    leader after an unclean    = the leader as above, or the first replica that is usable, which is the isr from then on

A replica is usable where its broker is and the log directory that it lies in works (KIP-858).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import ElectionType
from pybroker.metadata.image import NO_LEADER
from pybroker.metadata.replica_directories import directory_of
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from pybroker.metadata.image import MetadataImage, PartitionImage

    Usable = Callable[[int, bytes], bool]
    """Whether a broker can lead what lies in this directory of its."""

_RECOVERING = 1


def elect(partition: PartitionImage, usable: Usable) -> int:
    """Return the leader that the partition has when only `usable` replicas can lead."""

    def can_lead(replica: int) -> bool:
        return replica in partition.isr and usable(replica, directory_of(partition, replica))

    if can_lead(partition.leader):
        return partition.leader
    return next((replica for replica in partition.replicas if can_lead(replica)), NO_LEADER)


def elect_as_asked(
    topic_id: bytes, index: int, partition: PartitionImage, election_type: ElectionType, usable: Usable
) -> PartitionChangeRecord | None:
    """Return the change that an election makes; None where it makes none."""
    change = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    first = partition.replicas[0]
    leader = elect(partition, usable)
    if election_type is ElectionType.PREFERRED:
        if first in partition.isr and usable(first, directory_of(partition, first)):
            leader = first
    elif leader == NO_LEADER:
        able = (replica for replica in partition.replicas if usable(replica, directory_of(partition, replica)))
        leader = next(able, NO_LEADER)
        if leader != NO_LEADER:
            # What only the others had is lost; the new leader knows it until it has recovered (KIP-704).
            change.isr = [leader]
            if partition.leader_recovery_state != _RECOVERING:
                change.leader_recovery_state = _RECOVERING
    if leader == partition.leader:
        return None
    change.leader = leader
    return change


def after_leaving(
    image: MetadataImage, broker: int, usable: Usable, directories: Container[bytes] | None = None
) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of partitions when `broker` cannot lead any more; `usable` says no to it already.

    With `directories` it cannot lead what lies in these alone.
    """
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            if broker not in partition.isr:
                continue
            if directories is not None and directory_of(partition, broker) not in directories:
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


def after_returning(image: MetadataImage, usable: Usable) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of partitions without leader, now that `usable` brokers are more."""
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            if partition.leader == NO_LEADER:
                leader = elect(partition, usable)
                if leader != NO_LEADER:
                    yield PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=leader)


def leads_anything(image: MetadataImage, broker: int) -> bool:
    """Return whether the broker leads a partition."""
    return any(
        partition.leader == broker for topic in image.topics.by_id.values() for partition in topic.partitions.values()
    )
