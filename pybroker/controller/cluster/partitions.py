"""Partitions of a topic: adding more, and the rules for every new partition.

Owns Kafka's rules for adding partitions and for manual replica assignments, and builds the record of a new partition.
Reads the image, changes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import CreatePartitions, EnlargedTopic, MorePartitions
from pybroker.controller.cluster.placement import PlacementError, is_usable, place
from pybroker.machine.machine import Outcome
from pybroker.metadata.replica_directories import UNASSIGNED_DIRECTORY
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.partition import PartitionRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.controller.cluster.events import WholeRequest
    from pybroker.metadata.image import BrokerRegistration, MetadataImage, TopicImage
    from pybroker.protocol.schema import Message

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Kafka's limit for the records of one atomic batch."""


class RefusedError(Exception):
    """The creation or enlargement of one topic is rejected."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def create_partitions(image: MetadataImage, event: CreatePartitions) -> Outcome[Message, list[EnlargedTopic]]:
    """Decide about more partitions, each topic by itself."""
    results: list[EnlargedTopic] = []
    records: list[PartitionRecord] = []
    for topic in event.topics:
        try:
            check_whole(topic.name, event.whole)
            added = _added(image, topic, event.seed + len(records))
        except RefusedError as refusal:
            results.append(EnlargedTopic(topic.name, refusal.code, str(refusal)))
            continue
        records += added
        results.append(EnlargedTopic(topic.name))
    return Outcome(() if event.validate_only else tuple(records), results)


def _added(image: MetadataImage, more: MorePartitions, seed: int) -> list[PartitionRecord]:
    """Return the records of a topic's new partitions."""
    topic = image.topics.by_name.get(more.name)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise RefusedError(code, code.message)
    count = len(topic.partitions)
    if more.count == count:
        raise RefusedError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if more.count < count:
        raise RefusedError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {more.name} currently has {count} partition(s); {more.count} would not be an increase.",
        )
    brokers = image.cluster.brokers
    replicas = _replicas(topic, more, brokers, seed)
    return [
        partition_record(topic.topic_id, index, replicas_of, brokers)
        for index, replicas_of in enumerate(replicas, start=count)
    ]


def _replicas(
    topic: TopicImage, more: MorePartitions, brokers: Mapping[int, BrokerRegistration], seed: int
) -> list[tuple[int, ...]]:
    first = len(topic.partitions)
    additional = more.count - first
    factor = len(next(iter(topic.partitions.values())).replicas)
    if more.assignments is None:
        try:
            return place(brokers, additional, factor, seed)
        except PlacementError as error:
            raise RefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from None
    if len(more.assignments) != additional:
        raise invalid_assignment(
            f"Attempted to add {additional} additional partition(s), but only {len(more.assignments)} assignment(s) "
            "were specified."
        )
    assigned = [tuple(assignment.broker_ids) for assignment in more.assignments]
    for index, replicas in enumerate(assigned, start=first):
        check_replicas(index, replicas, brokers, factor)
    return assigned


def check_whole(name: str, whole: WholeRequest) -> None:
    """Reject a topic if the request has too many partitions, or names the topic more than once; raises RefusedError."""
    if whole.partitions > MAX_PARTITIONS_PER_REQUEST:
        raise RefusedError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {whole.partitions}, at most "
            f"{MAX_PARTITIONS_PER_REQUEST}.",
        )
    if whole.times[name] > 1:
        raise RefusedError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def check_replicas(
    index: int, replicas: tuple[int, ...], brokers: Mapping[int, BrokerRegistration], factor: int
) -> None:
    """Reject invalid replicas of a new partition, or a number other than `factor`; raises RefusedError."""
    check_assigned(replicas, brokers)
    if len(replicas) != factor:
        raise invalid_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is "
            f"not consistent with previous partitions, which have {factor} replica(s)."
        )
    if not any(is_usable(brokers[broker]) for broker in replicas):
        raise invalid_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )


def check_assigned(replicas: Sequence[int], brokers: Mapping[int, BrokerRegistration]) -> None:
    """Reject replicas that are invalid for any partition; raises RefusedError."""
    if not replicas:
        raise invalid_assignment("The manual partition assignment includes an empty replica list.")
    for broker, times in sorted(Counter(replicas).items()):
        if broker not in brokers:
            raise invalid_assignment(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if times > 1:
            raise invalid_assignment(f"The manual partition assignment includes the broker {broker} more than once.")


def invalid_assignment(message: str) -> RefusedError:
    """Return the error for an invalid manual assignment of replicas."""
    return RefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def partition_record(
    topic_id: bytes, index: int, replicas: tuple[int, ...], brokers: Mapping[int, BrokerRegistration]
) -> PartitionRecord:
    """Return the record of a new partition."""
    isr = [broker for broker in replicas if is_usable(brokers[broker])]
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[new_directory(brokers[broker]) for broker in replicas],
    )


def new_directory(broker: BrokerRegistration) -> bytes:
    """Return the directory id of a broker's new replica.

    A broker with several directories chooses by itself and reports it later (KIP-858).
    """
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY
