"""Optimisations of the logical graph (`topology.optimization`): fewer repartition topics, fewer stores (KIP-295)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pybroker.streams.dsl.graph import GraphNode, RepartitionGraphNode, StreamJoinGraphNode
from pybroker.streams.errors import StreamsError

REUSE_TABLE_TOPICS = "reuse.ktable.source.topics"
MERGE_REPARTITION_TOPICS = "merge.repartition.topics"
SINGLE_STORE_SELF_JOIN = "single.store.self.join"
ALL = (REUSE_TABLE_TOPICS, MERGE_REPARTITION_TOPICS, SINGLE_STORE_SELF_JOIN)


def optimizations(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the optimisations that `topology.optimization` names: `none`, `all`, or names separated by commas.

    Raises:
        StreamsError: a name is unknown, or `none` or `all` stands beside others.
    """
    value = str(config.get("topology.optimization", "none"))
    if value == "all":
        return frozenset(ALL)
    if value == "none":
        return frozenset()
    names = [name.strip() for name in value.split(",")]
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise StreamsError(
            f"invalid value {value!r} for 'topology.optimization': expected none, all, or a list of {', '.join(ALL)}"
        )
    return frozenset(names)


class RepartitionGraph(Protocol):
    """The part of the graph that merging repartition topics uses."""

    key_changers: dict[GraphNode, dict[RepartitionGraphNode, None]]
    merges: dict[GraphNode, None]

    def new_repartition(self, topic: str, like: RepartitionGraphNode) -> RepartitionGraphNode:
        """Return a repartition node of a topic that replaces several ones."""

    def rename_copartitioned(self, name: str, new_name: str) -> None:
        """Put the source of the new repartition topic in the place of one that it replaces."""


def merge_repartition_topics(graph: RepartitionGraph) -> None:
    """Replace the repartition topics below an operation that changes keys by one, right below the operation."""
    _assign_to_merges(graph)
    for changer, topics in list(graph.key_changers.items()):
        if not topics:
            continue
        merged = graph.new_repartition(next(iter(topics)).names.topic, _with_serdes(topics))
        merged.priority = changer.priority
        for topic in topics:
            child = _find_upstream(topic, changer)
            if child is None:
                # Kafka fails here too: an earlier merge of topics has moved the path below another operation.
                raise StreamsError(
                    f"cannot merge repartition topic {topic.names.topic} below {changer.name}: build the topology "
                    f"without {MERGE_REPARTITION_TOPICS} in topology.optimization"
                )
            _replace(topic, child, changer, merged)
            graph.rename_copartitioned(topic.name, merged.name)
        changer.add_child(merged)
        del graph.key_changers[changer]


def _replace(topic: RepartitionGraphNode, child: GraphNode, changer: GraphNode, merged: RepartitionGraphNode) -> None:
    """Move the path that leads to a topic below the merged topic, and take the topic out of the path."""
    merged.add_child(child)
    changer.remove_child(child)
    children, parents = list(topic.children), list(topic.parents)
    for below in children:
        for above in parents:
            above.add_child(below)
    for above in parents:
        above.remove_child(topic)
    topic.clear_children()


def _with_serdes(topics: Mapping[RepartitionGraphNode, None]) -> RepartitionGraphNode:
    """Return a node with the first serde of keys and the first serde of values that any of the topics has."""
    first = next(iter(topics))
    keys = [node.key_serde for node in topics if node.key_serde is not None]
    values = [node.value_serde for node in topics if node.value_serde is not None]
    return RepartitionGraphNode(first.names, keys[0] if keys else None, values[0] if values else None, optimizable=True)


def _find_upstream(node: GraphNode, ancestor: GraphNode) -> GraphNode | None:
    """Return the child of an ancestor on the path to a node, or None if there is no path."""
    if ancestor in node.parents:
        return node
    for parent in node.parents:
        if ancestor in parent.parents:
            return parent
        found = _find_upstream(parent, ancestor)
        if found is not None:
            return found
    return None


def _assign_to_merges(graph: RepartitionGraph) -> None:
    """Let a merge own the topics below it in place of the key-changing operations above it."""
    by_merge: dict[GraphNode, list[GraphNode]] = {}
    for merge in graph.merges:
        by_merge[merge] = [
            changer
            for changer, topics in graph.key_changers.items()
            if all(_find_upstream(topic, merge) is not None for topic in topics)
            and _find_upstream(merge, changer) is not None
        ]
    replaced: dict[GraphNode, None] = {}
    for merge, changers in by_merge.items():
        topics: dict[RepartitionGraphNode, None] = {}
        for changer in changers:
            topics |= graph.key_changers[changer]
            replaced[changer] = None
        graph.key_changers[merge] = topics
    for changer in replaced:
        del graph.key_changers[changer]


def rewrite_self_joins(root: GraphNode) -> None:
    """Let a join of a stream with itself use one store in place of two."""
    visited: set[GraphNode] = set()

    def visit(node: GraphNode) -> None:
        visited.add(node)
        if isinstance(node, StreamJoinGraphNode) and len(node.parents) == 1:
            parent = next(iter(node.parents))
            for child in list(parent.children):
                if child.name == node.windowed[1] and child.priority < node.priority:
                    parent.remove_child(child)
            node.is_self_join = True
        for child in list(node.children):
            if child not in visited:
                visit(child)

    visit(root)
