"""ISR changes that the leaders of partitions request (KIP-497, KIP-704, KIP-841, KIP-903).

Owns the validation of each partition's change, in the order of Kafka's controller::

    NOT_CONTROLLER          the leader has a later epoch than this controller, which is not active any more
    FENCED_LEADER_EPOCH     the leader has an earlier leader epoch
    INVALID_REQUEST         another broker is the leader, or the requested ISR is invalid
    INVALID_UPDATE_VERSION  the leader has an earlier partition epoch
    INELIGIBLE_REPLICA      a broker of the ISR is not registered, fenced, stopping, or has another epoch

`partition_changes` computes the consequences, such as the end of a reassignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.cluster.availability import Rules
from pybroker.controller.cluster.events import AlterPartitions, Result
from pybroker.controller.cluster.log_directories import usable_brokers
from pybroker.controller.cluster.partition_changes import RECOVERING, build_change
from pybroker.controller.cluster.placement import is_usable
from pybroker.machine.machine import Outcome
from pybroker.metadata.in_sync import NO_BROKER_EPOCH, InSyncChange, InSyncResult
from pybroker.metadata.topics_delta import TopicsDelta
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import MetadataImage, PartitionImage, TopicImage
    from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
    from pybroker.protocol.schema import Message

_RECOVERED = 0
_SAME_LEADER = -2
"""The leader field of a record that does not change the leader."""


def alter_partitions(
    image: MetadataImage, event: AlterPartitions, settings: ClusterSettings
) -> Outcome[Message, list[InSyncResult] | Result]:
    """Decide about ISR changes, one after the other: a second change of a partition has an outdated partition epoch."""
    broker = image.cluster.brokers.get(event.broker_id)
    if broker is None or broker.epoch != event.broker_epoch:
        found = "none" if broker is None else str(broker.epoch)
        message = (
            f"Expected broker epoch {found} of broker {event.broker_id}, but got broker epoch {event.broker_epoch}"
        )
        return Outcome((), Result(ErrorCode.STALE_BROKER_EPOCH, message))
    changes = _Changes(image, event.broker_id, settings)
    reply = [changes.alter(change) for change in event.changes]
    return Outcome(tuple(changes.records), reply)


class _Changes:
    """Changes in one state of the cluster, and their records."""

    def __init__(self, image: MetadataImage, broker_id: int, settings: ClusterSettings) -> None:
        self._image = image
        self._broker_id = broker_id
        self._usable = usable_brokers(image)
        self._rules = Rules(image, settings)
        # The topics after the records are applied.
        self._topics = TopicsDelta(image.topics)
        self.records: list[PartitionChangeRecord] = []

    def alter(self, change: InSyncChange) -> InSyncResult:
        """Change the in-sync replicas of a partition."""
        topic = self._image.topics.by_id.get(change.topic_id)
        if topic is None:
            return _refused(change, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self._partition(topic, change.partition)
        if partition is None:
            return _refused(change, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        fault = self._fault(partition, change)
        if fault is not ErrorCode.NONE:
            return _refused(change, fault)
        isr = tuple(broker_id for broker_id, _ in change.isr)
        record = build_change(
            change.topic_id,
            change.partition,
            partition,
            msgspec.structs.replace(partition, isr=isr, leader_recovery_state=change.leader_recovery_state),
            usable=self._usable,
            rules=self._rules(topic),
        )
        if record is not None:
            self.records.append(record)
            self._topics.apply_partition_change(record)
            if record.leader not in (self._broker_id, _SAME_LEADER):
                # A reassignment has completed, and the leader is not among the remaining replicas.
                return _refused(change, ErrorCode.NEW_LEADER_ELECTED)
        after = self._partition(topic, change.partition) or partition
        return InSyncResult(
            change.topic_id,
            change.partition,
            leader_id=after.leader,
            leader_epoch=after.leader_epoch,
            isr=after.isr,
            leader_recovery_state=after.leader_recovery_state,
            partition_epoch=after.partition_epoch,
        )

    def _partition(self, topic: TopicImage, index: int) -> PartitionImage | None:
        return self._topics.changed.get(topic.topic_id, topic.partitions).get(index)

    def _fault(self, partition: PartitionImage, change: InSyncChange) -> ErrorCode:
        if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
            return ErrorCode.NOT_CONTROLLER
        if change.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if self._broker_id != partition.leader:
            return ErrorCode.INVALID_REQUEST
        if change.partition_epoch < partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if not _is_possible(partition, change):
            return ErrorCode.INVALID_REQUEST
        if not all(self._is_eligible(broker_id, epoch) for broker_id, epoch in change.isr):
            return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE

    def _is_eligible(self, broker_id: int, epoch: int) -> bool:
        broker = self._image.cluster.brokers.get(broker_id)
        return broker is not None and is_usable(broker) and epoch in (NO_BROKER_EPOCH, broker.epoch)


def _is_possible(partition: PartitionImage, change: InSyncChange) -> bool:
    """Return whether the ISR is valid: distinct replicas with the leader, and only the leader while it recovers."""
    isr = {broker_id for broker_id, _ in change.isr}
    if len(isr) < len(change.isr) or partition.leader not in isr or not isr.issubset(partition.replicas):
        return False
    if change.leader_recovery_state == RECOVERING:
        return len(isr) == 1 and partition.leader_recovery_state == RECOVERING
    return change.leader_recovery_state == _RECOVERED


def _refused(change: InSyncChange, code: ErrorCode) -> InSyncResult:
    return InSyncResult(change.topic_id, change.partition, code)
