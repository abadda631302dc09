"""Requests to reassign partitions, to cancel reassignments, and to list them (KIP-455, KIP-860).

Owns the selection of partitions, the validation, and the result of each. `reassignments` computes the replicas of a
partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.availability import Rules
from pybroker.controller.cluster.elections import Election
from pybroker.controller.cluster.events import (
    AlterReassignments,
    ListReassignments,
    OngoingReassignment,
    OngoingTopic,
    ReassignableTopic,
    ReassignedPartition,
    ReassignedTopic,
)
from pybroker.controller.cluster.log_directories import usable_brokers
from pybroker.controller.cluster.partition_changes import build_change
from pybroker.controller.cluster.partitions import (
    MAX_PARTITIONS_PER_REQUEST,
    RefusedError,
    check_assigned,
    invalid_assignment,
    new_directory,
)
from pybroker.controller.cluster.reassignments import (
    Assignment,
    is_reassigned,
    plan_cancellation,
    plan_reassignment,
    replication_factor,
    to_be,
)
from pybroker.machine.machine import Outcome
from pybroker.metadata.topics_delta import TopicsDelta
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pybroker.controller.cluster.elections import ElectionRules
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import MetadataImage, PartitionImage, TopicImage
    from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
    from pybroker.protocol.schema import Message


def alter_reassignments(
    image: MetadataImage, event: AlterReassignments, settings: ClusterSettings
) -> Outcome[Message, list[ReassignedTopic]]:
    """Decide about the replicas of partitions, in order: a partition that is named twice is reassigned twice."""
    changes = _Reassignments(image, event.allow_replication_factor_change, settings)
    reply = [changes.reassign(topic) for topic in event.topics]
    return Outcome(tuple(changes.records), reply)


def list_reassignments(image: MetadataImage, event: ListReassignments) -> Outcome[Message, list[OngoingTopic]]:
    """Return the ongoing reassignments."""
    topics = image.topics.by_name
    requested: Iterable[tuple[str, Iterable[int]]] = (
        ((name, topic.partitions) for name, topic in topics.items()) if event.partitions is None else event.partitions
    )
    found = (OngoingTopic(name, _ongoing(topics[name], indices)) for name, indices in requested if name in topics)
    return Outcome((), [topic for topic in found if topic.partitions])


def _ongoing(topic: TopicImage, indices: Iterable[int]) -> list[OngoingReassignment]:
    named = ((index, topic.partitions.get(index)) for index in indices)
    return [
        OngoingReassignment(index, partition.replicas, partition.adding_replicas, partition.removing_replicas)
        for index, partition in named
        if partition is not None and is_reassigned(partition)
    ]


class _Reassignments:
    """Reassignments in one state of the cluster, and their records."""

    def __init__(self, image: MetadataImage, allow_replication_factor_change: bool, settings: ClusterSettings) -> None:
        self._image = image
        self._brokers = image.cluster.brokers
        self._allow_replication_factor_change = allow_replication_factor_change
        self._usable = usable_brokers(image)
        self._rules = Rules(image, settings)
        # The topics after the records are applied.
        self._topics = TopicsDelta(image.topics)
        self.records: list[PartitionChangeRecord] = []

    def reassign(self, requested: ReassignableTopic) -> ReassignedTopic:
        """Reassign a topic's partitions, or cancel their reassignment."""
        results = []
        for one in requested.partitions:
            try:
                self._reassign(requested.name, one.partition_index, one.replicas)
            except RefusedError as refusal:
                # The default message of an error code is not sent.
                words = None if str(refusal) == refusal.code.message else str(refusal)
                results.append(ReassignedPartition(one.partition_index, refusal.code, words))
            else:
                results.append(ReassignedPartition(one.partition_index))
        return ReassignedTopic(requested.name, results)

    def _reassign(self, name: str, index: int, target: Sequence[int] | None) -> None:
        topic = self._image.topics.by_name.get(name)
        if topic is None:
            raise _unknown(f"Unable to find a topic named {name}.")
        partition = self._topics.changed.get(topic.topic_id, topic.partitions).get(index)
        if partition is None:
            raise _unknown(f"Unable to find partition {name}:{index}.")
        rules = self._rules(topic)
        if target is None:
            to, election = _cancelled(name, index, partition, rules), rules.election
        else:
            to, election = self._reassigned(partition, target), Election.ONLINE
        change = build_change(
            topic.topic_id,
            index,
            partition,
            to_be(partition, to, lambda broker: new_directory(self._brokers[broker])),
            usable=self._usable,
            rules=rules,
            election=election,
        )
        if change is None:
            return
        if len(self.records) == MAX_PARTITIONS_PER_REQUEST:
            words = "Unable to perform excessively large batch operation."
            raise RefusedError(ErrorCode.POLICY_VIOLATION, words)
        self.records.append(change)
        self._topics.apply_partition_change(change)

    def _reassigned(self, partition: PartitionImage, target: Sequence[int]) -> Assignment:
        check_assigned(target, self._brokers)
        factor = replication_factor(partition)
        if not self._allow_replication_factor_change and len(target) != factor:
            raise RefusedError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {factor} to {len(target)}",
            )
        return plan_reassignment(partition, target)


def _cancelled(name: str, index: int, partition: PartitionImage, rules: ElectionRules) -> Assignment:
    if not is_reassigned(partition):
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        raise RefusedError(code, code.message)
    before = plan_cancellation(partition)
    if not before.isr and not rules.is_unclean:
        raise invalid_assignment(
            f"Unable to revert partition assignment for {name}:{index} because it would require an unclean leader "
            "election."
        )
    return before


def _unknown(message: str) -> RefusedError:
    return RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
