"""The group coordinator and the transaction coordinator of a broker, and their channels to other brokers.

Owns their construction, their events of the data plane, and the order of their shutdown. Must not know partitions'
roles.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.broker_channel import build_broker_channels
from pybroker.broker.producer_ids import ProducerIds
from pybroker.broker.shut_down import Stage
from pybroker.broker.transaction_verification import TransactionVerification
from pybroker.coordinator.group.building import build_coordinator as build_groups
from pybroker.coordinator.group.settings import build_settings
from pybroker.coordinator.runtime.commits import CommitWaits
from pybroker.coordinator.runtime.markers import Markers
from pybroker.coordinator.transaction.building import build_coordinator as build_transactions
from pybroker.coordinator.transaction.service import FreshIds
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.net.native import AppendCompleted, append_markers, verify_transactions
from pybroker.node.measuring import of_coordinators
from pybroker.node.own_partitions import BrokersPartitions
from pybroker.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from pybroker.storage.native import PartitionLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.broker.broker_channel import BrokerChannels
    from pybroker.broker.registration import Registration
    from pybroker.config.broker import BrokerConfig
    from pybroker.coordinator.group.service import GroupCoordinator
    from pybroker.coordinator.transaction.service import TransactionCoordinator
    from pybroker.metadata.image import MetadataImage
    from pybroker.node.foundation import Foundation
    from pybroker.node.listening import Listening
    from pybroker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
    from pybroker.storage.native import Partition
    from pybroker.storage.partitions import Partitions


class Coordinators(msgspec.Struct, frozen=True, eq=False):
    """The coordinators of a broker and their parts."""

    groups: GroupCoordinator
    producer_ids: ProducerIds
    markers: Markers
    transactions: TransactionCoordinator
    brokers: BrokerChannels
    verification: TransactionVerification


def build_coordinators(
    foundation: Foundation,
    listening: Listening,
    partitions: Partitions,
    registration: Registration,
    image: Callable[[], MetadataImage],
) -> Coordinators:
    """Return the coordinators of a broker. `image` returns the newest image."""
    config, clock, live, end = foundation.config, foundation.clock, foundation.live, foundation.shut_down.add
    data_plane, events = listening.data_plane, listening.events
    brokers = build_broker_channels(config, image, foundation.outbound.brokers)
    commits = CommitWaits()
    events.on(AppendCompleted, lambda event: commits.append_completed(event.ticket))

    def open_log(partition: Partition) -> PartitionLog:
        return PartitionLog(partition, data_plane)

    groups = build_groups(config, clock, find=partitions.get, open_log=open_log, commits=commits)
    end(Stage.DELAYED_REQUESTS, groups, groups.close)
    events.around_batches(groups.expect_step, groups.step)
    ids = ProducerIds(registration.allocate_producer_ids)
    markers = Markers(partial(append_markers, data_plane), commits, timeout_ms=lambda: live.current.request_timeout_ms)

    async def send_markers(broker: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        timeout_ms = config.request_timeout_ms
        return await brokers.markers.send(broker, request, WriteTxnMarkersResponse, timeout_ms=timeout_ms)

    transactions = build_transactions(
        config,
        clock,
        find=partitions.get,
        open_log=open_log,
        commits=commits,
        fresh_ids=FreshIds(ids.take, ids.take_after_refill),
        query_broker=send_markers,
        own=BrokersPartitions(partitions.get, markers, clock.wall_ms),
    )
    end(Stage.DELAYED_REQUESTS, transactions, transactions.close)
    events.around_batches(transactions.expect_step, transactions.step)
    end(Stage.DELAYED_REQUESTS, brokers, brokers.close)

    def coordinator_of(transactional_id: str) -> int | None:
        topic = image().topics.by_name.get(STATE_TOPIC)
        partition = None if topic is None else topic.partitions[transactions.partition_for(transactional_id)]
        return None if partition is None or partition.leader < 0 else partition.leader

    verification = TransactionVerification(
        brokers.verification, coordinator_of, timeout_ms=lambda: live.current.request_timeout_ms
    )

    def verify(changed: BrokerConfig) -> None:
        verify_transactions(data_plane, changed.transaction_partition_verification_enable)

    live.subscribe(lambda changed: groups.reconfigure(build_settings(changed)))
    live.subscribe(verify)
    verify(live.current)
    foundation.metrics.add(partial(of_coordinators, groups, transactions))
    return Coordinators(groups, ids, markers, transactions, brokers, verification)
