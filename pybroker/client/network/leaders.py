"""Finds the leaders of partitions, before requests that only leaders serve.

Owns the errors of partitions without a leader. Must not know the requests.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import BrokerError
from pybroker.client.network.cluster import Cluster
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.metadata import MetadataResponseTopic


class Leaders(Struct):
    """The leaders that were found."""

    by_node: dict[int, list[TopicPartition]] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    """Leader epochs of the partitions that have a leader."""
    refused: dict[TopicPartition, BrokerError] = field(default_factory=dict)
    """The errors of the other partitions."""


async def find_leaders(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Leaders:
    """Request the leaders of partitions from any broker. An unknown partition does not affect the others."""
    wanted = list(partitions)
    server, response = await cluster.metadata(sorted({partition.topic for partition in wanted}))
    topics = {topic.name: topic for topic in response.topics}
    leaders = Leaders()
    for partition in wanted:
        topic = topics.get(partition.topic) or MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        known = next((one for one in topic.partitions if one.partition_index == partition.partition), None)
        if known is not None and known.leader_id >= 0:
            leaders.by_node.setdefault(known.leader_id, []).append(partition)
            leaders.epochs[partition] = known.leader_epoch
            continue
        code, words = _refusal(topic, exists=known is not None)
        what = f"topic {partition.topic!r} partition {partition.partition}"
        refused = leaders.refused[partition] = BrokerError.of(server, what, code, words)
        # Kafka's clients retry a missing topic until their timeout. Here a wrong name is reported at once.
        refused.final = refused.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return leaders


def _refusal(topic: MetadataResponseTopic, *, exists: bool) -> tuple[int, str | None]:
    if topic.error_code:
        return topic.error_code, None
    if exists:
        return ErrorCode.LEADER_NOT_AVAILABLE, None
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _partitions_there(topic)


def _partitions_there(topic: MetadataResponseTopic) -> str:
    count = len(topic.partitions)
    return f"The topic '{topic.name}' has {count} partition{'' if count == 1 else 's'}."
