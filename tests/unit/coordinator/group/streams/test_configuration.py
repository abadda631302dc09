"""The configured topology: its cache, its bound, and the description of missing topics."""

from __future__ import annotations

import pytest

from pybroker.coordinator.group.errors import StreamsInvalidTopologyError
from pybroker.coordinator.group.streams.configuration import MOST_TASKS, configure, creatable, summarize
from pybroker.coordinator.group.streams.topology import build_topology
from pybroker.coordinator.group.view import TopicInfo
from pybroker.protocol.messages import streams_group_heartbeat as message
from tests.support.streams_groups import TOPOLOGY


def test_a_topology_is_configured_once_for_a_state_of_the_topics() -> None:
    topology = build_topology(TOPOLOGY)
    topics = {"in": TopicInfo(b"i" * 16, 2)}
    configured = configure(topology, topics)
    assert configure(topology, topics) is configured
    assert configure(topology, dict(topics)) is not configured
    assert [topic.name for topic in configured.missing] == ["counts", "words"]
    made = creatable(configured.missing[0])
    assert (made.num_partitions, made.replication_factor) == (2, -1)


def test_a_topology_with_too_many_tasks_is_rejected() -> None:
    topology = build_topology(message.Topology(subtopologies=[message.Subtopology(source_topics=["in"])]))
    assert configure(topology, {"in": TopicInfo(b"i" * 16, MOST_TASKS)}).is_ready
    with pytest.raises(StreamsInvalidTopologyError, match="The topology has more than 50000 tasks"):
        configure(topology, {"in": TopicInfo(b"i" * 16, MOST_TASKS + 1)})


def test_three_names_are_listed_and_the_others_counted() -> None:
    assert summarize(["a", "b", "c"]) == "a, b, c"
    assert summarize(["a", "b", "c", "d", "e"]) == "a, b, c and 2 additional topics"
