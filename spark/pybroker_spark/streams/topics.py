"""The topics of a topology in the cluster: their numbers of partitions, and the creation of repartition topics.

Owns all requests that a start sends to the cluster. The numbers are those that Kafka's group coordinator decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybroker.client import Admin, NewTopic
from pybroker.client.errors import BrokerError
from pybroker.coordinator.group.errors import StreamsInvalidTopologyError
from pybroker.coordinator.group.streams.partition_counts import IncorrectPartitionsError, decide_counts
from pybroker.coordinator.group.streams.topology import InternalTopic, build_topology
from pybroker.coordinator.group.streams.topology import Topology as GroupTopology
from pybroker.protocol.errors import ErrorCode
from pybroker.streams.application.group_topology import group_topology
from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.errors import StreamsError, TopologyError
from pybroker.streams.topology.nodes import SinkNode
from pybroker.streams.topology.topology import Topology


def prepare(topology: Topology, settings: ApplicationSettings) -> dict[str, int]:
    """Create missing repartition topics, and return the number of partitions of all topics of a topology.

    Raises:
        TopologyError: topics of a join have different numbers of partitions, or no numbers are possible.
        StreamsError: a source or sink topic is missing, or a repartition topic has another number of partitions.
        ClientError: no broker responds, or a topic cannot be created.
    """
    group = build_topology(group_topology(topology, settings))
    internal = {topic.name: topic for part in group.subtopologies for topic in part.repartition_source_topics}
    sources = {name for part in group.subtopologies for name in part.source_topics}
    sinks = {node.topic for node in topology.nodes.values() if isinstance(node, SinkNode) and _is_named(node)}
    sinks -= topology.internal_topics.keys()
    letters = settings.handlers.dead_letter_topic
    with Admin(settings.bootstrap_servers, settings.clients.admin) as admin:
        names = sorted({*sources, *map(str, sinks), *internal, *([letters] if letters else [])})
        existing = _existing(admin, names)
        for name in names:
            if name not in existing and name not in internal:
                raise StreamsError(f"topic {name!r} does not exist on {settings.bootstrap_servers}: create it first")
        counts = _decided(group, internal, existing)
        missing = [name for name in sorted(internal) if name not in existing]
        if missing:
            admin.create_topics([_new(internal[name], counts[name]) for name in missing])
            for name in missing:
                admin.wait_for_leaders(name)
    return {**existing, **counts}


def _is_named(node: SinkNode) -> bool:
    return isinstance(node.topic, str)


def _existing(admin: Admin, names: list[str]) -> dict[str, int]:
    there = set(admin.list_topics(internal=True))
    try:
        found = admin.describe_topics([name for name in names if name in there])
    except BrokerError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise StreamsError(f"a topic was deleted while the query started: {error}") from None
    return {topic.name: len(topic.partitions) for topic in found}


def _decided(
    group: GroupTopology, internal: Mapping[str, InternalTopic], existing: Mapping[str, int]
) -> dict[str, int]:
    outer = {name: count for name, count in existing.items() if name not in internal}
    try:
        decided = decide_counts(group, outer.get)
    except (IncorrectPartitionsError, StreamsInvalidTopologyError) as error:
        raise TopologyError(str(error)) from None
    counts = {name: decided[name] for name in internal}
    for name, count in counts.items():
        if existing.get(name, count) != count:
            raise StreamsError(
                f"repartition topic {name} has {existing[name]} partitions: expected {count}. Delete the topic and the "
                "checkpoint, or restore the number of partitions of the source topics"
            )
    return counts


def _new(topic: InternalTopic, partitions: int) -> NewTopic:
    return NewTopic(topic.name, partitions, topic.replication_factor, dict(topic.configs))
