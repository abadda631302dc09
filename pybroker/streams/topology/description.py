"""The text that `Topology.describe()` returns, equal to Kafka's.

Kafka keeps the successors of a node in a tree ordered by the number of paths below them, while these numbers still
change. Its text therefore depends on the order in which a HashMap returns the nodes, and this module follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pybroker.client.java.hash_order import in_hash_order
from pybroker.client.java.tree_set import TreeSet
from pybroker.streams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode


class DescribedNode:
    """A node, its predecessors and its successors, in the order in which Kafka prints them."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.size = 1
        """The number of paths that begin at this node, itself included."""
        self.predecessors: TreeSet[DescribedNode] = TreeSet(order)
        self.successors: TreeSet[DescribedNode] = TreeSet(order)

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.name

    def grow(self, paths: int) -> None:
        """Count paths that begin at this node, and at all nodes before it."""
        self.size += paths
        for predecessor in self.predecessors:
            predecessor.grow(paths)

    def __str__(self) -> str:
        lines = [_first_line(self.node)]
        if not isinstance(self.node, SinkNode):
            lines.append(f"      --> {_names(self.successors)}")
        if not isinstance(self.node, SourceNode):
            lines.append(f"      <-- {_names(self.predecessors)}")
        return "\n".join(lines)


class Subtopology(msgspec.Struct, frozen=True):
    """The nodes of one subtopology in the order in which Kafka prints them."""

    id: int
    nodes: tuple[Any, ...]
    is_global: bool

    def __str__(self) -> str:
        suffix = " for global store (will not generate tasks)" if self.is_global else ""
        nodes = "".join(f"    {node}\n" for node in self.nodes)
        return f"Sub-topology: {self.id}{suffix}\n{nodes}" + ("" if self.is_global else "\n")


class TopologyDescription(msgspec.Struct, frozen=True):
    """The subtopologies of a topology. `str()` of it is Kafka's text."""

    subtopologies: tuple[Subtopology, ...]

    def __str__(self) -> str:
        return "Topologies:\n " + "".join(f"  {subtopology}" for subtopology in self.subtopologies)


def describe(nodes: Mapping[str, Node], subtopologies: Iterable[tuple[Sequence[str], bool]]) -> TopologyDescription:
    """Return the description of a topology.

    Args:
        nodes: all nodes by name.
        subtopologies: the names of the nodes of each subtopology, and whether the subtopology fills a global store.
    """
    return TopologyDescription(
        tuple(
            Subtopology(number, tuple(_ordered(nodes, names)), is_global)
            for number, (names, is_global) in enumerate(subtopologies)
        )
    )


def _ordered(nodes: Mapping[str, Node], names: Sequence[str]) -> list[DescribedNode]:
    """Return the nodes of a subtopology, those with most paths first, and connect them."""
    described = {name: DescribedNode(nodes[name]) for name in in_hash_order(in_hash_order(names))}
    for node in described.values():
        for parent in node.node.parents:
            predecessor = described[parent]
            node.predecessors.add(predecessor)
            predecessor.successors.add(node)
            predecessor.grow(node.size)
    return sorted(described.values(), key=order)


def order(node: DescribedNode) -> tuple[int, str]:
    """Return the key by which Kafka orders nodes at this moment: those with more paths first, then by name."""
    return -node.size, node.name


def _first_line(node: Node) -> str:
    if isinstance(node, SourceNode):
        topics = _java_set(node.topics) if node.pattern is None else node.pattern.pattern
        return f"Source: {node.name} (topics: {topics})"
    if isinstance(node, ProcessorNode):
        return f"Processor: {node.name} (stores: {_java_set(node.stores)})"
    if isinstance(node.topic, str):
        return f"Sink: {node.name} (topic: {node.topic})"
    return f"Sink: {node.name} (extractor class: {node.topic!r})"


def _names(nodes: Iterable[DescribedNode]) -> str:
    return ", ".join(node.name for node in nodes) or "none"


def _java_set(names: Iterable[str]) -> str:
    """Return names as `HashSet.toString` prints them."""
    return f"[{', '.join(in_hash_order(names))}]"
