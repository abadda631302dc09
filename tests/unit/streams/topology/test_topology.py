"""A topology that is invalid is refused when it is built, and the message names what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from pybroker.streams import Processor, Topology, TopologyError
from pybroker.streams.state import builders


def with_source() -> Topology:
    return Topology().add_source("source", ["in"])


INVALID: dict[str, tuple[Callable[[], object], str]] = {
    "two nodes of one name": (lambda: with_source().add_source("source", ["other"]), "node source is already added"),
    "an empty name": (lambda: with_source().add_source("", ["other"]), "the name of a node is empty"),
    "one topic in two sources": (
        lambda: with_source().add_source("again", ["in"]),
        "topic in is already read by source",
    ),
    "a pattern that matches a read topic": (
        lambda: with_source().add_source("all", re.compile("i.*")),
        "pattern 'i.*' of source all matches topic in",
    ),
    "a topic that a pattern matches": (
        lambda: Topology().add_source("all", re.compile("i.*")).add_source("one", ["in"]),
        "topic in is already matched by the pattern of source all",
    ),
    "no topic": (lambda: Topology().add_source("source", []), "source source has no topics"),
    "an offset reset that does not exist": (
        lambda: Topology().add_source("source", ["in"], offset_reset="first"),
        "invalid offset_reset 'first'",
    ),
    "an unknown parent": (
        lambda: with_source().add_processor("p", Processor, "other"),
        "parent other of node p is unknown",
    ),
    "no parent": (lambda: with_source().add_processor("p", Processor), "node p has no parents"),
    "a node as its own parent": (lambda: with_source().add_processor("p", Processor, "p"), "node p is its own parent"),
    "a sink as a parent": (
        lambda: with_source().add_sink("sink", "out", "source").add_processor("p", Processor, "sink"),
        "sink sink cannot be the parent of node p",
    ),
    "an unknown store": (
        lambda: with_source().connect_processor_and_state_stores("p", "store"),
        "store store is unknown",
    ),
    "a store of a source": (
        lambda: with_source().connect_processor_and_state_stores("source", "store"),
        "cannot connect state stores to source",
    ),
    "a store of an unknown processor": (
        lambda: with_source().add_state_store(builders.key_value_store("store"), "p"),
        "processor p is unknown",
    ),
    "two stores of one name": (
        lambda: (
            with_source()
            .add_state_store(builders.key_value_store("store"))
            .add_state_store(builders.key_value_store("store"))
        ),
        "store store is already added with another builder",
    ),
    "a global store of a used name": (
        lambda: (
            with_source()
            .add_state_store(builders.key_value_store("store"))
            .add_global_store(builders.key_value_store("store"), "topic", ("s", "p"), Processor)
        ),
        "store store is already added",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_topology_is_refused_by_name(name: str) -> None:
    build, message = INVALID[name]
    with pytest.raises(TopologyError, match=re.escape(message)):
        build()


def test_processors_of_one_store_belong_to_one_subtopology() -> None:
    topology = Topology()
    for name in ("a", "b", "c"):
        topology.add_source(name, [f"topic-{name}"]).add_processor(f"process-{name}", Processor, name)
    topology.add_state_store(builders.key_value_store("shared"), "process-a", "process-c")
    assert topology.subtopologies() == [["a", "process-a", "c", "process-c"], ["b", "process-b"]]


def test_joined_repartition_topics_of_different_sizes_are_refused() -> None:
    topology = Topology().add_source("left", ["l"]).add_source("right", ["r"])
    topology.add_internal_topic("l", 2)
    topology.add_internal_topic("r", 3)
    topology.copartition_sources({"left", "right"})
    with pytest.raises(TopologyError, match=r"do not have the same number of partitions: \[l=2, r=3\]"):
        topology.check_copartitioning()
