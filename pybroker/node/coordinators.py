"""The coordinators of a broker: of groups and of transactions, with what both wait for.

Owns how they are built, which events of the data plane they handle, and when they end. Must not know partitions' roles
or the network.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pybroker.broker.producer_ids import ProducerIds
from pybroker.broker.shut_down import Stage
from pybroker.coordinator.group.building import build_coordinator as build_groups
from pybroker.coordinator.runtime.commits import CommitWaits
from pybroker.coordinator.runtime.markers import Markers
from pybroker.coordinator.transaction.building import build_coordinator as build_transactions
from pybroker.coordinator.transaction.service import FreshIds
from pybroker.net.native import AppendSettled, DataPlane, append_markers
from pybroker.node.own_partitions import BrokersPartitions
from pybroker.storage.native import PartitionLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.broker.registration import Registration
    from pybroker.coordinator.group.service import GroupCoordinator
    from pybroker.coordinator.transaction.service import TransactionCoordinator
    from pybroker.net.events import EventTable
    from pybroker.node.foundation import Foundation
    from pybroker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
    from pybroker.storage.native import Partition
    from pybroker.storage.partitions import Partitions

    AskBroker = Callable[[int, WriteTxnMarkersRequest], Awaitable[WriteTxnMarkersResponse]]


class Coordinators(NamedTuple):
    """What is built here."""

    commits: CommitWaits
    groups: GroupCoordinator
    producer_ids: ProducerIds
    markers: Markers
    transactions: TransactionCoordinator


def build_coordinators(
    foundation: Foundation,
    data_plane: DataPlane,
    events: EventTable,
    partitions: Partitions,
    registration: Registration,
    ask_broker: AskBroker,
) -> Coordinators:
    """Return the coordinators of a broker. `ask_broker` has another broker write transaction markers."""
    config, clock, live, end = foundation.config, foundation.clock, foundation.live, foundation.shut_down.add
    commits = CommitWaits()
    events.on(AppendSettled, lambda event: commits.append_settled(event.ticket))

    def open_log(partition: Partition) -> PartitionLog:
        return PartitionLog(partition, data_plane)

    groups = build_groups(config, clock, find=partitions.get, open_log=open_log, commits=commits)
    end(Stage.PARKED_REQUESTS, groups, groups.close)
    events.around_batches(groups.expect_step, groups.step)
    ids = ProducerIds(registration.allocate_producer_ids)
    markers = Markers(partial(append_markers, data_plane), commits, timeout_ms=lambda: live.current.request_timeout_ms)
    transactions = build_transactions(
        config,
        clock,
        find=partitions.get,
        open_log=open_log,
        commits=commits,
        fresh_ids=FreshIds(ids.take, ids.take_after_refill),
        ask_broker=ask_broker,
        own=BrokersPartitions(partitions.get, markers, clock.wall_ms),
    )
    end(Stage.PARKED_REQUESTS, transactions, transactions.close)
    events.around_batches(transactions.expect_step, transactions.step)
    return Coordinators(commits, groups, ids, markers, transactions)
