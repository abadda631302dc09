"""Opens single partitions and makes this broker their leader."""

from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.descriptors import divide
from pybroker.replica.native import DataPlane, Role, become_roles
from pybroker.storage.native import LogConfig, Partition
from pybroker.storage.partitions import Opening, Partitions


def open_one(
    partitions: Partitions, topic: str, index: int, topic_id: bytes, config: LogConfig, assigned: bytes | None = None
) -> Partition:
    """Open a partition. Raises the error that prevents it."""
    (opened,) = partitions.open_all([Opening((topic, index), topic_id, config, assigned)]).values()
    if isinstance(opened, Exception):
        raise opened
    return opened


def start_data_plane(config: BrokerConfig) -> DataPlane:
    """Start a data plane without listeners. `shut_down` ends it."""
    return DataPlane(build_data_plane_settings(config, divide()))


def lead(partition: Partition) -> None:
    """Make this broker the leader of a partition with a single replica."""
    data_plane = start_data_plane(BrokerConfig({"num.network.threads": "1"}))
    role = Role.leader(0, partition_epoch=0, followers=[], min_insync_replicas=1)
    (failure,) = become_roles([(partition, role)], data_plane)
    data_plane.shut_down(grace_ms=0)
    assert failure is None, failure
