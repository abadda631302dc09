"""Which log directory each replica lies in, and which replicas are offline for it (KIP-858).

Owns the ids with a meaning of their own and the question whether a directory works. A broker reports at its
registration which directories work, and later which have failed; a replica in another one is offline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pybroker.metadata.image import ClusterImage, PartitionImage

UNASSIGNED_DIRECTORY = ZERO_UUID
"""Kafka's `DirectoryId.UNASSIGNED`: the broker has not reported where it put the replica."""
LOST_DIRECTORY = (1).to_bytes(16)
"""Kafka's `DirectoryId.LOST`: wherever it was put, it cannot be served."""
MIGRATING_DIRECTORY = (2).to_bytes(16)
"""Kafka's `DirectoryId.MIGRATING`: from before brokers reported directories."""

_RESERVED = 100
"""Ids below this number are Kafka's own, with a meaning or to get one."""
_NEVER_OFFLINE = frozenset({UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY})


def is_reserved(directory: bytes) -> bool:
    """Return whether an id cannot be that of a directory."""
    return int.from_bytes(directory) < _RESERVED


def is_online(directory: bytes, log_dirs: Collection[bytes]) -> bool:
    """Return whether a directory works, given those that work as its broker says.

    A broker that names none is not doubted.
    """
    if directory in _NEVER_OFFLINE or directory in log_dirs:
        return True
    return not log_dirs and directory != LOST_DIRECTORY


def directory_of(partition: PartitionImage, replica: int) -> bytes:
    """Return the directory of a replica."""
    if not partition.directories:
        return UNASSIGNED_DIRECTORY
    return partition.directories[partition.replicas.index(replica)]


def directories_by_broker(cluster: ClusterImage) -> Mapping[int, Collection[bytes]]:
    """Return the directories of each broker that serves clients: what `offline_replicas` asks for."""
    return {broker.id: broker.log_dirs for broker in cluster.brokers.values() if not broker.fenced}


def offline_replicas(partition: PartitionImage, working: Mapping[int, Collection[bytes]]) -> list[int]:
    """Return the replicas whose broker, or whose directory there, is not at work."""
    return [replica for replica, directory in _placed(partition) if not _works(replica, directory, working)]


def _placed(partition: PartitionImage) -> Iterator[tuple[int, bytes]]:
    if partition.directories:
        return zip(partition.replicas, partition.directories, strict=True)
    return ((replica, UNASSIGNED_DIRECTORY) for replica in partition.replicas)


def _works(replica: int, directory: bytes, working: Mapping[int, Collection[bytes]]) -> bool:
    log_dirs = working.get(replica)
    return log_dirs is not None and (directory in log_dirs or is_online(directory, log_dirs))
