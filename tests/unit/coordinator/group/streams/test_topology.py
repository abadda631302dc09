"""Which topologies are rejected before any topic is read."""

from __future__ import annotations

import pytest

from pybroker.coordinator.group.errors import GroupError, InvalidRequestError, StreamsInvalidTopologyError
from pybroker.coordinator.group.streams.topology import build_topology, check_topology, topic_names
from pybroker.protocol.messages import streams_group_heartbeat as message
from tests.support.streams_groups import TOPOLOGY


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ([message.Subtopology(source_topic_regex=["a.*"])], InvalidRequestError, "Regular expressions for source"),
        (
            [message.Subtopology(state_changelog_topics=[message.TopicInfo(name="c", partitions=2)])],
            StreamsInvalidTopologyError,
            "Changelog topic c must have an undefined partition count, but it is set to 2.",
        ),
        (
            [message.Subtopology(repartition_source_topics=[message.TopicInfo(name="r", partitions=-2)])],
            StreamsInvalidTopologyError,
            "Repartition topic r must not have -2 partitions.",
        ),
        (
            [message.Subtopology(copartition_groups=[message.CopartitionGroup(source_topics=[0])])],
            StreamsInvalidTopologyError,
            "has an index without a topic",
        ),
        ([message.Subtopology(), message.Subtopology()], StreamsInvalidTopologyError, "with the same id"),
    ],
)
def test_impossible_topologies_are_rejected(
    parts: list[message.Subtopology], error: type[GroupError], words: str
) -> None:
    with pytest.raises(error, match=words):
        check_topology(message.Topology(subtopologies=parts))


def test_a_topology_names_its_topics_once() -> None:
    assert topic_names(TOPOLOGY) == ["in", "words", "counts"]
    topology = build_topology(TOPOLOGY)
    assert topology.reader_of == {"in": "0", "words": "1"}
    assert topology.required_topics == {"in", "words", "counts"}
