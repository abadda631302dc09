"""Builds the group coordinator of a broker from its configuration.

Must not know how groups are coordinated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.group.service import GroupCoordinator
from pybroker.coordinator.group.settings import build_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.config.broker import BrokerConfig
    from pybroker.coordinator.runtime.commits import CommitWaits
    from pybroker.machine.clock import Clock
    from pybroker.storage.native import Partition, PartitionLog


def build_coordinator(
    config: BrokerConfig,
    clock: Clock,
    *,
    find: Callable[[str, int], Partition | None],
    open_log: Callable[[Partition], PartitionLog],
    commits: CommitWaits,
) -> GroupCoordinator:
    """Return a coordinator without partitions.

    `find` returns this broker's open replica of a partition, or None. `open_log` returns the log of that replica.
    `commits` is shared by all coordinators of the data plane.
    """

    def log_of(index: int) -> PartitionLog | None:
        partition = find(OFFSETS_TOPIC, index)
        return None if partition is None else open_log(partition)

    return GroupCoordinator(
        build_settings(config),
        node_id=config.node_id,
        partitions=config.offsets_topic_num_partitions,
        codec=config.offsets_topic_compression_codec,
        commit_timeout_ms=config.offsets_commit_timeout_ms,
        load_bytes=config.offsets_load_buffer_size,
        open_log=log_of,
        commits=commits,
        clock=clock,
    )
