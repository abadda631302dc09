"""Which replicas a partition has while it is reassigned, and when that is done (KIP-455).

Owns the arithmetic alone::

    original   = replicas - adding
    replicas'  = target + (replicas - target)
    adding'    = replicas' - original
    removing'  = replicas' - target
    done       when isr - removing' is not empty, has all of adding' - removing', and has all of target where fewer
               come than go; then replicas' = target, isr' = isr - removing', and nothing is added or removed
    cancelled  replicas' = original, isr' = isr - adding, which must not be empty

Nobody is elected uncleanly for it. Where one reassignment takes another's place, a replica that the second one does not
want is both added and removed, so that the second one can come to its end and a cancellation finds the original. In
Kafka it keeps the second one from ending, or is forgotten, and a cancellation keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.controller.cluster.elections import elect
from pybroker.metadata.replica_directories import directory_of
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pybroker.controller.cluster.elections import Usable
    from pybroker.metadata.image import PartitionImage


class Assignment(NamedTuple):
    """What a partition is to have."""

    replicas: tuple[int, ...]
    """The preferred leader first, those that go last."""
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


def is_reassigned(partition: PartitionImage) -> bool:
    """Return whether a reassignment is in progress."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def replication_factor(partition: PartitionImage) -> int:
    """Return how many replicas the partition has, or will have when its reassignment is done."""
    return len(_without(partition.replicas, partition.removing_replicas))


def plan_reassignment(partition: PartitionImage, target: Sequence[int]) -> Assignment:
    """Return what the partition has on its way to the replicas `target`, or there, where it is done at once."""
    original = _without(partition.replicas, partition.adding_replicas)
    replicas = (*target, *sorted(set(partition.replicas).difference(target)))
    adding = tuple(sorted(set(replicas).difference(original)))
    removing = replicas[len(target) :]
    synced = _without(partition.isr, removing)
    wanted = target if len(adding) < len(removing) else _without(adding, removing)
    if synced and set(wanted) <= set(synced):
        return Assignment(tuple(target), synced)
    return Assignment(replicas, partition.isr, adding, removing)


def plan_cancellation(partition: PartitionImage) -> Assignment | None:
    """Return what the partition had before its reassignment; None where nobody of that is in sync."""
    isr = _without(partition.isr, partition.adding_replicas)
    return Assignment(_without(partition.replicas, partition.adding_replicas), isr) if isr else None


def build_change(
    topic_id: bytes,
    index: int,
    partition: PartitionImage,
    to: Assignment,
    *,
    usable: Usable,
    new_directory: Callable[[int], bytes],
) -> PartitionChangeRecord | None:
    """Return the change that makes a partition so; None where it is.

    `new_directory` returns the log directory's id of a broker that has no replica yet.
    """
    directories = [
        directory_of(partition, replica) if replica in partition.replicas else new_directory(replica)
        for replica in to.replicas
    ]
    after = msgspec.structs.replace(
        partition, replicas=to.replicas, isr=to.isr, directories=tuple(directories) if partition.directories else ()
    )
    change = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    leader = elect(after, usable)
    # A replica that has left must notice by the leader epoch, also where the leader stays.
    if leader != partition.leader or not set(partition.replicas) <= set(to.replicas):
        change.leader = leader
    if to.isr != partition.isr:
        change.isr = list(to.isr)
    if to.replicas != partition.replicas:
        change.replicas = list(to.replicas)
    if tuple(directories) != tuple(directory_of(partition, replica) for replica in partition.replicas):
        change.directories = directories
    if to.removing != partition.removing_replicas:
        change.removing_replicas = list(to.removing)
    if to.adding != partition.adding_replicas:
        change.adding_replicas = list(to.adding)
    return None if change == PartitionChangeRecord(partition_id=index, topic_id=topic_id) else change


def _without(brokers: Iterable[int], some: Collection[int]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers if broker not in some)
