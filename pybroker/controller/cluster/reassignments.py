"""The replicas of a partition during its reassignment, and the condition of its completion (KIP-455).

Owns only these equations::

    original   = replicas - adding
    replicas'  = target + (replicas - target)
    adding'    = replicas' - original
    removing'  = replicas' - target
    done       when isr - removing' is not empty, has all of adding' - removing', and has all of target if more
               replicas are removed than added; then replicas' = target, isr' = isr - removing', adding' and
               removing' are empty
    cancelled  replicas' = original, isr' = isr - adding; if that is empty, an unclean election is needed

If a second reassignment replaces the first one, an added replica that is not in the second target is both added and
removed. So the second one can complete, and a cancellation restores the original. In Kafka such a replica blocks the
completion, or is forgotten, and a cancellation keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.metadata.replica_directories import UNASSIGNED_DIRECTORY, directory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pybroker.metadata.image import PartitionImage


class Assignment(NamedTuple):
    """The requested replicas of a partition."""

    replicas: tuple[int, ...]
    """The preferred leader first, the replicas to be removed last."""
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


def is_reassigned(partition: PartitionImage) -> bool:
    """Return whether a reassignment is in progress."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def replication_factor(partition: PartitionImage) -> int:
    """Return the replication factor of the partition, after its reassignment if one is in progress."""
    return len(_without(partition.replicas, partition.removing_replicas))


def plan_reassignment(partition: PartitionImage, target: Sequence[int]) -> Assignment:
    """Return the replicas of the partition during a reassignment to `target`, or after it if it completes at once."""
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
    """Return the replicas before the reassignment; the isr is empty if none of them is in sync."""
    isr = _without(partition.isr, partition.adding_replicas)
    return Assignment(_without(partition.replicas, partition.adding_replicas), isr)


def to_be(partition: PartitionImage, to: Assignment, new_directory: Callable[[int], bytes]) -> PartitionImage:
    """Return the partition with the given assignment.

    `new_directory` returns the id of the log directory on a broker that has no replica yet.
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
    """Return the partition after its reassignment, or unchanged if there is none, or it is not complete."""
    if not is_reassigned(partition):
        return partition
    to = plan_reassignment(partition, _without(partition.replicas, partition.removing_replicas))
    if to.adding or to.removing:
        return partition
    return to_be(partition, to, lambda _: UNASSIGNED_DIRECTORY)


def _without(brokers: Iterable[int], some: Collection[int]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers if broker not in some)
