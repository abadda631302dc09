"""The partition counts of internal topics, and the topologies that have none."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group.errors import StreamsInvalidTopologyError
from pybroker.coordinator.group.streams.partition_counts import IncorrectPartitionsError, decide_counts
from pybroker.coordinator.group.streams.topology import CopartitionGroup, InternalTopic, Subtopology, Topology


def part(name: str, sources: str = "", **fields: Any) -> Subtopology:
    """A subtopology with topics by name; `name:3` is a repartition topic with a fixed count."""
    return Subtopology(
        name,
        tuple(sources.split()),
        (),
        _topics(fields.get("changelogs", "")),
        tuple(fields.get("sinks", "").split()),
        _topics(fields.get("repartition", "")),
        tuple(CopartitionGroup(sources, (), repartition) for sources, repartition in fields.get("groups", ())),
    )


def _topics(text: str) -> tuple[InternalTopic, ...]:
    pairs = [word.partition(":") for word in text.split()]
    return tuple(InternalTopic(name, int(count or 0), 0, ()) for name, _, count in pairs)


def decide(*parts: Subtopology, **existing: int) -> dict[str, int]:
    """Decide the counts with these existing topics."""
    return decide_counts(Topology(0, parts), existing.get)


def test_a_repartition_topic_has_the_largest_count_of_its_writers_inputs() -> None:
    found = decide(part("0", "a b", sinks="r"), part("1", repartition="r", changelogs="c"), a=2, b=5)
    assert found == {"r": 5, "c": 5}


def test_a_fixed_count_applies() -> None:
    found = decide(part("0", "a", sinks="r"), part("1", repartition="r:7", changelogs="c"), a=2)
    assert found == {"r": 7, "c": 7}


def test_counts_follow_over_several_subtopologies_in_any_order() -> None:
    found = decide(
        part("0", repartition="q", sinks="r"),
        part("1", "a", sinks="q"),
        part("2", repartition="r", changelogs="c"),
        a=4,
    )
    assert found == {"q": 4, "r": 4, "c": 4}


def test_copartitioned_repartition_topics_have_the_count_of_the_source() -> None:
    found = decide(part("0", "a", sinks="r"), part("1", "b", repartition="r", groups=[((0,), (0,))]), a=2, b=6)
    assert found == {"r": 6}


def test_copartitioned_repartition_topics_have_the_largest_count_of_them() -> None:
    found = decide(
        part("0", "a", sinks="q"),
        part("1", "b", sinks="r"),
        part("2", repartition="q r", groups=[((), (0, 1))]),
        a=2,
        b=6,
    )
    assert found == {"q": 6, "r": 6}


def test_copartitioned_sources_with_different_counts_are_an_error() -> None:
    words = r"Following topics do not have the same number of partitions: \[\{a=2, b=3\}\]"
    with pytest.raises(IncorrectPartitionsError, match=words):
        decide(part("0", "a b", groups=[((0, 1), ())]), a=2, b=3)


def test_a_fixed_count_that_differs_from_the_source_is_an_error() -> None:
    words = r"Number of partitions \[4\] of repartition topic \[r\] doesn't match number of partitions \[2\]"
    with pytest.raises(IncorrectPartitionsError, match=words):
        decide(part("0", "a", sinks="r"), part("1", "b", repartition="r:4", groups=[((0,), (0,))]), a=2, b=2)


def test_a_loop_is_an_invalid_topology() -> None:
    with pytest.raises(StreamsInvalidTopologyError, match="There may be loops in the topology"):
        decide(part("0", repartition="r", sinks="q"), part("1", repartition="q", sinks="r"))


def test_a_repartition_topic_without_a_writer_is_an_invalid_topology() -> None:
    with pytest.raises(StreamsInvalidTopologyError, match="never used as a sink topic"):
        decide(part("0", repartition="r"))


def test_a_subtopology_without_inputs_is_an_invalid_topology() -> None:
    with pytest.raises(StreamsInvalidTopologyError, match="No source topics found for subtopology 0"):
        decide(part("0", changelogs="c"))
