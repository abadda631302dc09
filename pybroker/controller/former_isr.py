"""Replicas that have left an ISR since the partition's leader was last known to be alive.

Owns what the active controller remembers of them. After a crash of all replicas, brokers register one after the other,
and each registration removes a broker from the ISR (KIP-966). The last broker stays in the ISR. If it reports that its
replica lost records, the replica that left before it is in sync instead (docs/adr/0104). Must not decide about an ISR:
`cluster/log_directories.py` does.

The memory is the active controller's own, and is no part of the metadata: another controller that becomes active begins
without it. Invariant: a replica in the memory left the ISR after this controller became active, and its broker has not
reported the replica as lost. A heartbeat of the leader ends the memory of a partition, because the leader appends
records with the ISR that is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.metadata.image import NO_LEADER
from pybroker.metadata.replica_directories import LOST_DIRECTORY, directory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage, PartitionImage
    from pybroker.metadata.partition_index import PartitionKey


class FormerIsr:
    """A publisher of the metadata image that remembers replicas that have left an ISR. Used from one event loop."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        """`is_active` returns whether this node is the active controller."""
        self._is_active = is_active
        # The replicas of a partition in the order in which they left.
        self._left: dict[PartitionKey, tuple[int, ...]] = {}

    def of(self, partitions: Iterable[PartitionKey]) -> dict[PartitionKey, tuple[int, ...]]:
        """Return the remembered replicas of these partitions, the last to leave at the end."""
        return {key: self._left[key] for key in partitions if key in self._left}

    def forget(self) -> None:
        """Forget all replicas: another controller was active."""
        self._left.clear()

    def leader_is_alive(self, broker: int, image: MetadataImage) -> None:
        """Forget the replicas of all partitions that a broker leads, and of partitions that are deleted."""
        if self._left:
            leaders = {key: _leader(image, key) for key in self._left}
            self._left = {key: left for key, left in self._left.items() if leaders[key] not in (broker, None)}

    def publish(self, delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Record the replicas that left an ISR between the previous image and this one."""
        if not self._is_active():
            return
        for topic_id, index, before, after in delta.changed_partitions(image):
            self._note((topic_id, index), before, after)

    def _note(self, key: PartitionKey, before: PartitionImage, after: PartitionImage) -> None:
        if before.leader == NO_LEADER and after.leader != NO_LEADER:
            # A broker that is elected when it returns is alive.
            self._left.pop(key, None)
            return
        left = [*self._left.get(key, ()), *(replica for replica in before.isr if replica not in after.isr)]
        kept = tuple(
            replica
            for replica in left
            if replica in after.replicas and replica not in after.isr and directory_of(after, replica) != LOST_DIRECTORY
        )
        if kept:
            self._left[key] = kept
        else:
            self._left.pop(key, None)


def _leader(image: MetadataImage, key: PartitionKey) -> int | None:
    topic = image.topics.by_id.get(key[0])
    partition = None if topic is None else topic.partitions.get(key[1])
    return None if partition is None else partition.leader
