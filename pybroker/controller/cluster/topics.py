"""Creating and deleting topics.

Owns Kafka's rules for both, and the order of a creation's records: TopicRecord, ConfigRecords, PartitionRecords. Reads
the image, changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.cluster.events import CreatedTopic, CreateTopics, DeletedTopic, DeleteTopics, NewTopic
from pybroker.controller.cluster.partitions import (
    RefusedError,
    check_replicas,
    check_whole,
    invalid_assignment,
    partition_record,
)
from pybroker.controller.cluster.placement import PlacementError, place
from pybroker.controller.cluster.topic_names import may_collide, metric_name, name_fault
from pybroker.machine.machine import Outcome
from pybroker.metadata.image import TOPIC_RESOURCE
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.config import ConfigRecord
from pybroker.protocol.messages.records.remove_topic import RemoveTopicRecord
from pybroker.protocol.messages.records.topic import TopicRecord
from pybroker.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.controller.cluster.events import WholeRequest
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import BrokerRegistration, MetadataImage, TopicImage
    from pybroker.protocol.schema import Message

__all__ = ["NewTopic", "create_topics", "delete_topics"]

METADATA_TOPIC = "__cluster_metadata"


class _Plan(msgspec.Struct, frozen=True):
    replicas: list[tuple[int, ...]]
    records: list[Message]


def create_topics(
    image: MetadataImage, event: CreateTopics, settings: ClusterSettings
) -> Outcome[Message, list[CreatedTopic]]:
    """Decide about new topics, each by itself."""
    taken = _metric_names(image, event.topics)
    results: list[CreatedTopic] = []
    records: list[Message] = []
    partitions = 0
    for topic, topic_id in zip(event.topics, event.topic_ids, strict=True):
        try:
            check_whole(topic.name, event.whole)
            _check_name(topic.name, image, taken)
            plan = _plan(topic, topic_id, image, event.seed + partitions, settings)
        except RefusedError as refusal:
            results.append(CreatedTopic(topic.name, refusal.code, str(refusal)))
            continue
        if may_collide(topic.name):
            taken[metric_name(topic.name)] = topic.name
        partitions += len(plan.replicas)
        records += plan.records
        results.append(
            CreatedTopic(
                topic.name,
                topic_id=topic_id,
                num_partitions=len(plan.replicas),
                replication_factor=len(plan.replicas[0]),
            )
        )
    return Outcome(() if event.validate_only else tuple(records), results)


def delete_topics(image: MetadataImage, event: DeleteTopics) -> Outcome[Message, list[DeletedTopic]]:
    """Decide about topics to delete, each by itself; a topic that the request names more than once is rejected."""
    results: list[DeletedTopic] = []
    records: list[Message] = []
    for requested in event.topics:
        topic = image.topics.by_name.get(requested) if isinstance(requested, str) else image.topics.by_id.get(requested)
        code, words = _deletion_fault(requested, topic, event.whole)
        if topic is None:
            name, topic_id = (requested, ZERO_UUID) if isinstance(requested, str) else (None, requested)
            results.append(DeletedTopic(name, topic_id, code, words))
            continue
        results.append(DeletedTopic(topic.name, topic.topic_id, code, words))
        if code is ErrorCode.NONE:
            records.append(RemoveTopicRecord(topic_id=topic.topic_id))
    return Outcome(tuple(records), results)


def _deletion_fault(
    requested: str | bytes, topic: TopicImage | None, whole: WholeRequest
) -> tuple[ErrorCode, str | None]:
    """Return why a topic is not deleted, NONE if it is deleted; the messages are Kafka's."""
    is_name = isinstance(requested, str)
    if whole.times[requested] > 1:
        return ErrorCode.INVALID_REQUEST, f"Duplicate topic {'name' if is_name else 'id'}."
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_name else ErrorCode.UNKNOWN_TOPIC_ID
        return code, code.message
    if topic.name in whole.times and topic.topic_id in whole.times:
        return ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
    return ErrorCode.NONE, None


def _metric_names(image: MetadataImage, topics: Sequence[NewTopic]) -> dict[str, str]:
    """Return the existing topic of each metric name, if a new topic's name may collide."""
    if not any(may_collide(topic.name) for topic in topics):
        return {}
    return {metric_name(name): name for name in image.topics.by_name if may_collide(name)}


def _check_name(name: str, image: MetadataImage, taken: Mapping[str, str]) -> None:
    fault = name_fault(name)
    if fault is not None:
        raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name == METADATA_TOPIC:
        # As in Kafka: the topic exists, and no client is authorized to create it.
        raise RefusedError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    if name in image.topics.by_name:
        raise RefusedError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = taken.get(metric_name(name)) if may_collide(name) else None
    if other is not None:
        raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _plan(topic: NewTopic, topic_id: bytes, image: MetadataImage, seed: int, settings: ClusterSettings) -> _Plan:
    configs = _configs(topic, settings)
    brokers = image.cluster.brokers
    replicas = _manual(topic, brokers) if topic.assignments else _automatic(topic, brokers, seed, settings)
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
        for name, value in configs.items()
    ]
    records += [partition_record(topic_id, index, brokers_of, brokers) for index, brokers_of in enumerate(replicas)]
    return _Plan(replicas, records)


def _configs(topic: NewTopic, settings: ClusterSettings) -> dict[str, str]:
    configs: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise RefusedError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {config.name}")
        configs[config.name] = config.value
    fault = settings.config_rules.topic_fault(configs)
    if fault is not None:
        raise RefusedError(ErrorCode.INVALID_CONFIG, fault)
    return configs


def _automatic(
    topic: NewTopic, brokers: Mapping[int, BrokerRegistration], seed: int, settings: ClusterSettings
) -> list[tuple[int, ...]]:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise RefusedError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise RefusedError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    partitions = settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = settings.replication_factor if topic.replication_factor == -1 else topic.replication_factor
    try:
        return place(brokers, partitions, factor, seed)
    except PlacementError as error:
        raise RefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from None


def _manual(topic: NewTopic, brokers: Mapping[int, BrokerRegistration]) -> list[tuple[int, ...]]:
    for name, number in (("replication factor", topic.replication_factor), ("numPartitions", topic.num_partitions)):
        if number != -1:
            raise RefusedError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    placed: dict[int, tuple[int, ...]] = {}
    for assignment in topic.assignments:
        index, replicas = assignment.partition_index, tuple(assignment.broker_ids)
        if index in placed:
            raise invalid_assignment(f"Found multiple manual partition assignments for partition {index}")
        check_replicas(index, replicas, brokers, len(next(iter(placed.values()), replicas)))
        placed[index] = replicas
    if sorted(placed) != list(range(len(placed))):
        raise invalid_assignment("partitions should be a consecutive 0-based integer sequence")
    return [placed[index] for index in range(len(placed))]
