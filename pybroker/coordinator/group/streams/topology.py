"""The topology of a streams application, as a value, and its validation.

Owns the conversion from the heartbeat and from the record: both have the same fields. Must not know the cluster's
topics: `configuration` resolves them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import InvalidRequestError, StreamsInvalidTopologyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.protocol.messages import streams_group_heartbeat as request
    from pybroker.protocol.messages.group_records import streams_group_topology as record


class InternalTopic(msgspec.Struct, frozen=True):
    """A repartition or changelog topic in a topology."""

    name: str
    partitions: int
    """0 if the broker decides."""
    replication_factor: int
    """0 for the default."""
    configs: tuple[tuple[str, str], ...]


class CopartitionGroup(msgspec.Struct, frozen=True):
    """Source topics that must have the same number of partitions, as indexes into the subtopology's lists."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


class Subtopology(msgspec.Struct, frozen=True):
    """A part of a topology whose tasks are independent of other parts."""

    id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    @property
    def inputs(self) -> list[str]:
        """The names of all topics that it reads."""
        return [*self.source_topics, *(topic.name for topic in self.repartition_source_topics)]


class Topology(msgspec.Struct, frozen=True, dict=True):
    """A topology. Caches values derived from it and from a state of the cluster's topics."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]
    """Sorted by id."""

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """The names of source, repartition and changelog topics."""
        return frozenset(
            name
            for part in self.subtopologies
            for name in (*part.inputs, *(topic.name for topic in part.state_changelog_topics))
        )

    @cached_property
    def reader_of(self) -> Mapping[str, str]:
        """The id of the subtopology that reads each source or repartition topic."""
        return {name: part.id for part in self.subtopologies for name in part.inputs}


def build_topology(topology: request.Topology | record.StreamsGroupTopologyValue) -> Topology:
    """Return the topology of a heartbeat or a record."""
    return Topology(topology.epoch, tuple(sorted(map(_subtopology, topology.subtopologies), key=lambda part: part.id)))


def check_topology(topology: request.Topology) -> None:
    """Raise an error for a topology that no cluster can run."""
    if topology.epoch < 0:
        raise InvalidRequestError(f"The topology epoch is {topology.epoch}, but must not be negative.")
    if len({part.subtopology_id for part in topology.subtopologies}) < len(topology.subtopologies):
        raise StreamsInvalidTopologyError("The topology contains two subtopologies with the same id.")
    for part in topology.subtopologies:
        if part.source_topic_regex:
            raise InvalidRequestError("Regular expressions for source topics are not supported yet.")
        for topic in part.state_changelog_topics:
            if topic.partitions != 0:
                raise StreamsInvalidTopologyError(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
        for topic in part.repartition_source_topics:
            if topic.partitions < 0:
                raise StreamsInvalidTopologyError(
                    f"Repartition topic {topic.name} must not have {topic.partitions} partitions."
                )
        for group in part.copartition_groups:
            _check_indexes(group.source_topics, len(part.source_topics), part.subtopology_id)
            _check_indexes(group.repartition_source_topics, len(part.repartition_source_topics), part.subtopology_id)


def topic_names(topology: request.Topology) -> list[str]:
    """Return the names of all topics in a topology, each once."""
    names = [
        name
        for part in topology.subtopologies
        for name in (
            *part.source_topics,
            *part.repartition_sink_topics,
            *(topic.name for topic in part.repartition_source_topics),
            *(topic.name for topic in part.state_changelog_topics),
        )
    ]
    return list(dict.fromkeys(names))


def _check_indexes(indexes: Sequence[int], count: int, subtopology_id: str) -> None:
    if any(not 0 <= index < count for index in indexes):
        raise StreamsInvalidTopologyError(
            f"A copartition group of subtopology {subtopology_id} has an index without a topic."
        )


def _subtopology(part: request.Subtopology | record.Subtopology) -> Subtopology:
    return Subtopology(
        part.subtopology_id,
        tuple(part.source_topics),
        tuple(part.source_topic_regex),
        tuple(map(_topic, part.state_changelog_topics)),
        tuple(part.repartition_sink_topics),
        tuple(map(_topic, part.repartition_source_topics)),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics), tuple(group.source_topic_regex), tuple(group.repartition_source_topics)
            )
            for group in part.copartition_groups
        ),
    )


def _topic(topic: request.TopicInfo | record.TopicInfo) -> InternalTopic:
    configs = tuple((config.key, config.value) for config in topic.topic_configs)
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)
