"""A topology as the group coordinator validates it (KIP-1071): subtopologies, internal topics and their configuration.

Must not know a client. The names, orders and defaults are those that Kafka Streams sends and uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pybroker.client.java.hash_order import HashOrderedSet, in_hash_order, string_hash
from pybroker.protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    Subtopology,
    TopicInfo,
)
from pybroker.protocol.messages.streams_group_heartbeat import Topology as GroupTopology
from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.errors import TopologyError
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.topology.nodes import ProcessorNode, SinkNode, SourceNode
from pybroker.streams.topology.topology import Topology

MAX_LONG = 2**63 - 1
DAY_MS = 86_400_000
CREATE_TIME = {"message.timestamp.type": "CreateTime"}
REPARTITION = {**CREATE_TIME, "cleanup.policy": "delete", "segment.bytes": "52428800", "retention.ms": "-1"}


def group_topology(topology: Topology, settings: ApplicationSettings) -> GroupTopology:
    """Return the topology that a member sends when it joins.

    Raises:
        TopologyError: a source subscribes to a pattern, which streams groups do not support.
    """
    names = _Names(topology, settings)
    repartition = {names.decorated(topic) for topic in topology.internal_topics}
    found = []
    for number, nodes in enumerate(topology.subtopologies()):
        if topology.is_global(nodes):
            continue
        sources = set(names.source_topics(nodes))
        subtopology = Subtopology(
            subtopology_id=str(number),
            source_topics=sorted(sources - repartition),
            repartition_sink_topics=sorted(names.sink_topics(nodes) & repartition),
            repartition_source_topics=[names.repartition_topic(topic) for topic in sorted(sources & repartition)],
            state_changelog_topics=names.changelog_topics(nodes),
        )
        subtopology.copartition_groups = [
            _copartition_group(group, subtopology) for group in names.copartition_groups() if sources.issuperset(group)
        ]
        found.append(subtopology)
    return GroupTopology(epoch=0, subtopologies=sorted(found, key=lambda it: it.subtopology_id))


def changelog_config(
    builder: StoreBuilder, defaults: Mapping[str, str], additional_retention_ms: int
) -> dict[str, str]:
    """Return the configuration of a changelog topic.

    Args:
        builder: the store.
        defaults: the keys of `topic.` settings.
        additional_retention_ms: `windowstore.changelog.additional.retention.ms`.
    """
    given = builder.log_config
    policy = "compact,delete" if builder.is_window else "compact"
    config = {**CREATE_TIME, "cleanup.policy": policy, **defaults, **given}
    if builder.is_versioned and "min.compaction.lag.ms" not in given:
        config["min.compaction.lag.ms"] = str(min((builder.history_retention_ms or 0) + DAY_MS, MAX_LONG))
    elif builder.is_window and "retention.ms" not in given:
        config["retention.ms"] = str(min((builder.retention_ms or 0) + additional_retention_ms, MAX_LONG))
    return config


class _Names:
    """The topics of a topology by their names in the cluster."""

    def __init__(self, topology: Topology, settings: ApplicationSettings) -> None:
        self._topology = topology
        self._settings = settings
        self._application_id = settings.config.application_id

    def decorated(self, topic: str) -> str:
        return f"{self._application_id}-{topic}" if topic in self._topology.internal_topics else topic

    def source_topics(self, nodes: Iterable[str]) -> list[str]:
        topics: list[str] = []
        for name in nodes:
            node = self._topology.nodes[name]
            if isinstance(node, SourceNode):
                if node.pattern is not None:
                    raise TopologyError(
                        f"source {name} subscribes to the pattern {node.pattern.pattern!r}: streams groups need names "
                        "of topics"
                    )
                topics.extend(map(self.decorated, node.topics))
        return topics

    def sink_topics(self, nodes: Iterable[str]) -> set[str]:
        return {
            self.decorated(node.topic)
            for name in nodes
            if isinstance(node := self._topology.nodes[name], SinkNode) and isinstance(node.topic, str)
        }

    def repartition_topic(self, topic: str) -> TopicInfo:
        internal = self._topology.internal_topics[topic.removeprefix(f"{self._application_id}-")]
        return self._info(topic, {**REPARTITION, **self._settings.topic_configs}, internal.partitions or 0)

    def changelog_topics(self, nodes: Sequence[str]) -> list[TopicInfo]:
        topics: dict[str, TopicInfo] = {}
        stores = {
            store
            for name in nodes
            if isinstance(node := self._topology.nodes[name], ProcessorNode)
            for store in node.stores
        }
        for store in sorted(stores & self._topology.stores.keys()):
            builder = self._topology.stores[store].builder
            source = self._topology.store_source_topics.get(store)
            if source is None and not builder.logging:
                continue
            topic = f"{self._application_id}-{store}-changelog" if source is None else self.decorated(source)
            additional_ms = self._settings.window_additional_retention_ms
            topics[topic] = self._info(topic, changelog_config(builder, self._settings.topic_configs, additional_ms))
        return [topics[topic] for topic in sorted(topics)]

    def copartition_groups(self) -> list[HashOrderedSet[str]]:
        """Return the groups of topics that need equal numbers of partitions, in the order of Kafka's hash sets.

        The coordinator compares the topologies of members, and with them the order of groups and of their topics.
        """
        group_of: dict[str, HashOrderedSet[str]] = {}
        for sources in self._topology.copartition_groups:
            nodes = in_hash_order(name for name in sources if name in self._topology.nodes)
            topics = in_hash_order(topic for node in nodes for topic in self.source_topics([node]))
            group = next((group_of[topic] for topic in topics if topic in group_of), HashOrderedSet(string_hash))
            for topic in topics:
                group.add(topic)
                group_of[topic] = group
        unique = HashOrderedSet(_set_hash, group_of.values())
        return list(unique)

    def _info(self, topic: str, config: Mapping[str, str], partitions: int = 0) -> TopicInfo:
        return TopicInfo(
            name=topic,
            partitions=partitions,
            replication_factor=self._settings.replication_factor,
            topic_configs=[KeyValue(key=key, value=config[key]) for key in sorted(config)],
        )


def _set_hash(topics: HashOrderedSet[str]) -> int:
    """Return `Set.hashCode` as an unsigned number."""
    return sum(map(string_hash, topics)) & 0xFFFFFFFF


def _copartition_group(topics: Iterable[str], subtopology: Subtopology) -> CopartitionGroup:
    repartition = [topic.name for topic in subtopology.repartition_source_topics]
    group = CopartitionGroup(source_topics=[], repartition_source_topics=[])
    for topic in topics:
        if topic in subtopology.source_topics:
            group.source_topics.append(subtopology.source_topics.index(topic))
        else:
            group.repartition_source_topics.append(repartition.index(topic))
    return group
