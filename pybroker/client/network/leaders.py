"""Finds the leaders of partitions, before requests that only leaders serve.

Owns the errors of partitions without a leader. Must not know the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.network.cluster import Cluster
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)


class Leaders(Struct):
    """The leaders that were found."""

    by_node: dict[int, list[TopicPartition]] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    """Leader epochs of the partitions that have a leader."""
    refused: dict[TopicPartition, BrokerError] = field(default_factory=dict)
    """The errors of the other partitions."""
    brokers: list[int] = field(default_factory=list)
    """The ids of the brokers that are not fenced."""


async def find_leaders(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Leaders:
    """Request the leaders of partitions from any broker. An unknown partition does not affect the others."""
    wanted = list(partitions)
    server, response = await cluster.metadata(sorted({partition.topic for partition in wanted}))
    return _leaders(server, response, wanted)


async def find_newer_leaders(cluster: Cluster, epochs: Mapping[TopicPartition, int], known: Leaders) -> Leaders:
    """Return the partitions with newer leaders in the metadata of a broker that does not lead them by `known`.

    A broker that was paused, and replaced as a leader, knows neither at first. So another broker is queried, the first
    that responds. Partitions have their `known` leaders if no other broker responds.
    """
    newer = Leaders()
    for leader, partitions in known.by_node.items():
        topics = sorted({partition.topic for partition in partitions})
        others = [broker for broker in known.brokers if broker != leader]
        response = await _first_metadata(cluster, topics, others)
        if response is None:
            continue
        found = _leaders("another broker", response, partitions)
        newer.brokers = found.brokers
        for node, of_node in found.by_node.items():
            # A broker before Kafka 2.1 returns no epoch.
            changed = [partition for partition in of_node if 0 <= epochs[partition] < found.epochs[partition]]
            if changed:
                newer.by_node.setdefault(node, []).extend(changed)
                newer.epochs |= {partition: found.epochs[partition] for partition in changed}
    return newer


async def _first_metadata(cluster: Cluster, topics: list[str], brokers: list[int]) -> MetadataResponse | None:
    """Return the first response of some brokers; None if no broker responds."""

    async def query(broker: int) -> MetadataResponse:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])
        request.allow_auto_topic_creation = False
        async with cluster.node(broker) as connection:
            return await connection.query(request, MetadataResponse)

    queries = [asyncio.ensure_future(query(broker)) for broker in brokers]
    try:
        for done in asyncio.as_completed(queries):
            with contextlib.suppress(ClientError):
                return await done
        return None
    finally:
        for one in queries:
            one.cancel()
        await asyncio.gather(*queries, return_exceptions=True)


def _leaders(server: str, response: MetadataResponse, wanted: Iterable[TopicPartition]) -> Leaders:
    topics = {topic.name: topic for topic in response.topics}
    leaders = Leaders(brokers=[broker.node_id for broker in response.brokers])
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
