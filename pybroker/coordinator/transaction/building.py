"""Builds the transaction coordinator of a broker from its configuration.

Must not know how it coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.runtime.kind import RuntimeSettings
from pybroker.coordinator.transaction.service import TransactionCoordinator
from pybroker.coordinator.transaction.settings import build_settings
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.config.broker import BrokerConfig
    from pybroker.coordinator.runtime.commits import CommitWaits
    from pybroker.coordinator.transaction.own_partitions import OwnPartitions
    from pybroker.coordinator.transaction.service import FreshIds
    from pybroker.machine.clock import Clock
    from pybroker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
    from pybroker.storage.native import Partition, PartitionLog


def build_coordinator(
    config: BrokerConfig,
    clock: Clock,
    *,
    find: Callable[[str, int], Partition | None],
    open_log: Callable[[Partition], PartitionLog],
    commits: CommitWaits,
    fresh_ids: FreshIds,
    query_broker: Callable[[int, WriteTxnMarkersRequest], Awaitable[WriteTxnMarkersResponse]],
    own: OwnPartitions,
) -> TransactionCoordinator:
    """Return a coordinator without partitions; the arguments are those of the class."""

    def log_of(index: int) -> PartitionLog | None:
        partition = find(STATE_TOPIC, index)
        return None if partition is None else open_log(partition)

    return TransactionCoordinator(
        build_settings(config),
        RuntimeSettings(
            node_id=config.node_id,
            partitions=config.transaction_state_log_num_partitions,
            commit_timeout_ms=config.request_timeout_ms,
            load_bytes=config.transaction_state_log_load_buffer_size,
        ),
        open_log=log_of,
        commits=commits,
        fresh_ids=fresh_ids,
        query_broker=query_broker,
        own=own,
        clock=clock,
    )
