"""Which replicas a partition has while it is reassigned, and when that is done (KIP-455).

Owns the arithmetic alone::

    original   = replicas - adding
    replicas'  = target + (replicas - target)
    adding'    = replicas' - original
    removing'  = replicas' - target
    done       when isr - removing' is not empty, has all of adding' - removing', and has all of target where fewer
               come than go; then replicas' = target, isr' = isr - removing', and nothing is added or removed
    cancelled  replicas' = original, isr' = isr - adding; where that is empty, it takes an unclean election

Where one reassignment takes another's place, a replica that the second one does not
want is both added and removed, so that the second one can come to its end and a cancellation finds the original. In
Kafka it keeps the second one from ending, or is forgotten, and a cancellation keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.metadata.replica_directories import UNASSIGNED_DIRECTORY, directory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

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


def plan_cancellation(partition: PartitionImage) -> Assignment:
    """Return what the partition had before its reassignment; its isr is empty where nobody of that is in sync."""
    isr = _without(partition.isr, partition.adding_replicas)
    return Assignment(_without(partition.replicas, partition.adding_replicas), isr)


def to_be(partition: PartitionImage, to: Assignment, new_directory: Callable[[int], bytes]) -> PartitionImage:
    """Return the partition with what it is to have.

    `new_directory` returns the log directory's id of a broker that has no replica yet.
    """
    directories = tuple(
        directory_of(partition, replica) if replica in partition.replicas else new_directory(replica)
        for replica in to.replicas
    )
    return msgspec.structs.replace(
        partition,
        replicas=to.replicas,
        isr=to.isr,
        adding_replicas=to.adding,
        removing_replicas=to.removing,
        directories=directories,
    )


def completed(partition: PartitionImage) -> PartitionImage:
    """Return the partition at the end of its reassignment, or as it is where none is, or is not done."""
    if not is_reassigned(partition):
        return partition
    to = plan_reassignment(partition, _without(partition.replicas, partition.removing_replicas))
    if to.adding or to.removing:
        return partition
    return to_be(partition, to, lambda _: UNASSIGNED_DIRECTORY)


def _without(brokers: Iterable[int], some: Collection[int]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers if broker not in some)
