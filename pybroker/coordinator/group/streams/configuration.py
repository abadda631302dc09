"""The configured topology: a topology with the partition counts that the cluster's topics imply.

Owns the number of tasks of each subtopology, the internal topics to create, and the status of a group whose topics are
missing or incorrectly partitioned (Kafka's `InternalTopicManager`). Creates no topic: the handler does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import StreamsInvalidTopologyError
from pybroker.coordinator.group.modern.subscription import metadata_hash
from pybroker.coordinator.group.streams.partition_counts import IncorrectPartitionsError, decide_counts
from pybroker.coordinator.group.streams.status import Status, StatusCode
from pybroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pybroker.coordinator.group.streams.topology import InternalTopic, Subtopology, Topology
    from pybroker.coordinator.group.view import TopicInfo

MOST_TASKS = 50_000
"""Maximum number of tasks of a topology. Each assignment iterates over all of them."""
_SHOWN = 3


class ConfiguredTopic(msgspec.Struct, frozen=True):
    """An internal topic with its partition count."""

    name: str
    partitions: int
    replication_factor: int
    """0 for the default."""
    configs: tuple[tuple[str, str], ...]


class ConfiguredSubtopology(msgspec.Struct, frozen=True):
    """A subtopology whose topics have partition counts."""

    id: str
    tasks: int
    """Number of tasks: the largest partition count among its inputs."""
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[ConfiguredTopic, ...]
    state_changelog_topics: tuple[ConfiguredTopic, ...]

    @property
    def has_state(self) -> bool:
        """Whether it has stores with changelog topics, so that standby tasks are useful."""
        return bool(self.state_changelog_topics)

    @property
    def inputs(self) -> list[str]:
        """The names of all topics that it reads."""
        return [*self.source_topics, *(topic.name for topic in self.repartition_source_topics)]


class ConfiguredTopology(msgspec.Struct, frozen=True):
    """A topology in a state of the cluster's topics."""

    epoch: int
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """By id, in order; None if source topics are missing or topics are incorrectly partitioned."""
    missing: tuple[ConfiguredTopic, ...] = ()
    """Internal topics that do not exist yet."""
    fault: Status | None = None
    """Why no task can be assigned; None if all topics are there."""

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.fault is None


def configure(topology: Topology, topics: Mapping[str, TopicInfo]) -> ConfiguredTopology:
    """Return the configured topology, cached for a state of the cluster's topics.

    Raises `StreamsInvalidTopologyError` for a topology that no cluster can run.
    """
    seen = topology.__dict__.get("_configured")
    if seen is None or seen[0] is not topics:
        seen = topology.__dict__["_configured"] = topics, _configure(topology, topics)
    found: ConfiguredTopology = seen[1]
    return found


def creatable(topic: ConfiguredTopic) -> CreatableTopic:
    """Return the request that creates an internal topic."""
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or -1,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )


def summarize(names: Collection[str]) -> str:
    """Return the first names, and the number of the others."""
    listed = ", ".join(list(names)[:_SHOWN])
    return f"{listed} and {len(names) - _SHOWN} additional topics" if len(names) > _SHOWN else listed


def _configure(topology: Topology, topics: Mapping[str, TopicInfo]) -> ConfiguredTopology:
    seen = metadata_hash(topology.required_topics, topics)
    lost = sorted({name for part in topology.subtopologies for name in part.source_topics if name not in topics})
    if lost:
        words = f"Source topics {summarize(lost)} are missing."
        return ConfiguredTopology(topology.epoch, seen, None, (), Status(StatusCode.MISSING_SOURCE_TOPICS, words))
    try:
        counts = decide_counts(topology, lambda name: None if (topic := topics.get(name)) is None else topic.partitions)
        parts = {part.id: _configured(part, topics, counts) for part in topology.subtopologies}
        if sum(part.tasks for part in parts.values()) > MOST_TASKS:
            raise StreamsInvalidTopologyError(f"The topology has more than {MOST_TASKS} tasks.")
        missing = tuple(_missing(parts, topics))
    except IncorrectPartitionsError as error:
        fault = Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, str(error))
        return ConfiguredTopology(topology.epoch, seen, None, (), fault)
    if not missing:
        return ConfiguredTopology(topology.epoch, seen, parts)
    words = f"Internal topics are missing: {summarize([topic.name for topic in missing])}"
    return ConfiguredTopology(topology.epoch, seen, parts, missing, Status(StatusCode.MISSING_INTERNAL_TOPICS, words))


def _configured(part: Subtopology, topics: Mapping[str, TopicInfo], counts: Mapping[str, int]) -> ConfiguredSubtopology:
    # Every input has a count: `decide_counts` has checked that.
    tasks = max(counts[name] if (topic := topics.get(name)) is None else topic.partitions for name in part.inputs)
    return ConfiguredSubtopology(
        part.id,
        tasks,
        part.source_topics,
        part.repartition_sink_topics,
        tuple(_topic(topic, counts) for topic in part.repartition_source_topics),
        tuple(_topic(topic, counts) for topic in part.state_changelog_topics),
    )


def _topic(topic: InternalTopic, counts: Mapping[str, int]) -> ConfiguredTopic:
    partitions = topic.partitions or counts[topic.name]
    return ConfiguredTopic(topic.name, partitions, topic.replication_factor, topic.configs)


def _missing(parts: Mapping[str, ConfiguredSubtopology], topics: Mapping[str, TopicInfo]) -> Iterator[ConfiguredTopic]:
    """Yield the internal topics that do not exist; raises an error if one exists with another partition count."""
    internal = {
        topic.name: topic
        for part in parts.values()
        for topic in (*part.repartition_source_topics, *part.state_changelog_topics)
    }
    for name, topic in sorted(internal.items()):
        there = topics.get(name)
        if there is None:
            yield topic
        elif there.partitions != topic.partitions:
            raise IncorrectPartitionsError(
                f"Existing topic {name} has different number of partitions: expected {topic.partitions}, found "
                f"{there.partitions}"
            )
