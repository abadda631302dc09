"""The log directory of each replica, and the replicas that are offline (KIP-858).

Owns the reserved directory ids, and the rule whether a directory is online. A broker reports its online directories at
its registration, and failed ones later. A replica in any other directory is offline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pybroker.metadata.image import ClusterImage, PartitionImage

UNASSIGNED_DIRECTORY = ZERO_UUID
"""Kafka's `DirectoryId.UNASSIGNED`: the broker has not reported the replica's directory."""
LOST_DIRECTORY = (1).to_bytes(16)
"""Kafka's `DirectoryId.LOST`: the replica's directory has failed."""
MIGRATING_DIRECTORY = (2).to_bytes(16)
"""Kafka's `DirectoryId.MIGRATING`: assigned before brokers reported directories."""

_RESERVED = 100
"""Ids below this number are reserved by Kafka."""
_NEVER_OFFLINE = frozenset({UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY})


def is_reserved(directory: bytes) -> bool:
    """Return whether an id is reserved, so that no directory has it."""
    return int.from_bytes(directory) < _RESERVED


def is_online(directory: bytes, log_dirs: Collection[bytes]) -> bool:
    """Return whether a directory is online, given the online directories that its broker reported.

    If the broker reported none, all directories except `LOST_DIRECTORY` are online.
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
    """Return the online directories of each unfenced broker, for `offline_replicas`."""
    return {broker.id: broker.log_dirs for broker in cluster.brokers.values() if not broker.fenced}


def offline_replicas(partition: PartitionImage, working: Mapping[int, Collection[bytes]]) -> list[int]:
    """Return the replicas whose broker is fenced or not registered, or whose directory is offline."""
    return [replica for replica, directory in _placed(partition) if not _works(replica, directory, working)]


def _placed(partition: PartitionImage) -> Iterator[tuple[int, bytes]]:
    if partition.directories:
        return zip(partition.replicas, partition.directories, strict=True)
    return ((replica, UNASSIGNED_DIRECTORY) for replica in partition.replicas)


def _works(replica: int, directory: bytes, working: Mapping[int, Collection[bytes]]) -> bool:
    log_dirs = working.get(replica)
    return log_dirs is not None and (directory in log_dirs or is_online(directory, log_dirs))
