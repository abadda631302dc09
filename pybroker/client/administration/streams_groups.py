"""Streams groups in Admin's results: members, tasks, topologies. Plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pybroker.client.administration.topics import BrokerDescription


class StreamsTasks(Struct, frozen=True):
    """Tasks by subtopology: the numbers of their partitions, in the order of the broker's response."""

    active: Mapping[str, tuple[int, ...]] = {}
    standby: Mapping[str, tuple[int, ...]] = {}
    warmup: Mapping[str, tuple[int, ...]] = {}


class StreamsMemberDescription(Struct, frozen=True):
    """A member of a streams group: a thread of an application."""

    member_id: str
    epoch: int
    instance_id: str | None
    client_id: str
    host: str
    process_id: str
    topology_epoch: int
    endpoint: tuple[str, int] | None
    """Host and port of the process for interactive queries."""
    assignment: StreamsTasks
    target: StreamsTasks
    is_classic: bool = False


class StreamsTopic(Struct, frozen=True):
    """An internal topic of a topology."""

    name: str
    partitions: int
    """0 while the broker has not decided."""


class SubtopologyDescription(Struct, frozen=True):
    """A part of a topology."""

    id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[StreamsTopic, ...]
    state_changelog_topics: tuple[StreamsTopic, ...]


class StreamsGroupDescription(Struct, frozen=True):
    """A streams group and its members."""

    group_id: str
    state: str
    group_epoch: int
    target_epoch: int
    topology_epoch: int
    """-1 without a topology."""
    subtopologies: tuple[SubtopologyDescription, ...]
    members: tuple[StreamsMemberDescription, ...]
    coordinator: BrokerDescription
    assignor: str | None = None
    """None from a broker too old to return it."""
