"""Builds the logical graph, numbers its nodes, and writes it to a topology after the optimisations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybroker.client.java.priority_queue import PriorityQueue
from pybroker.streams.dsl.graph import (
    GraphNode,
    RepartitionGraphNode,
    RepartitionNames,
    SourceGraphNode,
    SuppressGraphNode,
    TableSourceGraphNode,
)
from pybroker.streams.dsl.optimizer import merge_repartition_topics, optimizations, rewrite_self_joins
from pybroker.streams.errors import TopologyError
from pybroker.streams.topology.topology import Topology


class GraphBuilder:
    """The graph of one `StreamsBuilder` (`InternalStreamsBuilder`)."""

    def __init__(self) -> None:
        self.topology = Topology()
        self.root = GraphNode("root")
        self._names = 0
        self._priorities = 0
        self._nodes: dict[GraphNode, None] = {}
        self.key_changers: dict[GraphNode, dict[RepartitionGraphNode, None]] = {}
        """Operations that can change keys, each with the repartition topics that exist because of it."""
        self.merges: dict[GraphNode, None] = {}

    def new_name(self, prefix: str) -> str:
        """Return the prefix with the next number, ten digits long. Nodes and stores share the numbers."""
        name = f"{prefix}{self._names:010d}"
        self._names += 1
        return name

    def new_store_name(self, prefix: str) -> str:
        """Return a name for a store of an operation."""
        return self.new_name(f"{prefix}STATE-STORE-")

    def name_or_new(self, name: str | None, prefix: str) -> str:
        """Return a given name, or a new one. The number advances in both cases, as it does in Kafka."""
        new = self.new_name(prefix)
        return new if name is None else name

    def suffixed_or_new(self, name: str | None, suffix: str, prefix: str) -> str:
        """Return a given name with a suffix, or a new name. The number advances in both cases."""
        new = self.new_name(prefix)
        return new if name is None else name + suffix

    def add(self, node: GraphNode, *parents: GraphNode) -> None:
        """Add a node below its parents, in the order of the parents."""
        for parent in parents:
            parent.add_child(node)
            node.priority = self._priorities
            self._priorities += 1
            self._register(node)
        self._nodes[node] = None

    def _register(self, node: GraphNode) -> None:
        if node.key_changing:
            self.key_changers[node] = {}
        elif isinstance(node, RepartitionGraphNode) and node.optimizable:
            changer = key_changing_parent(node)
            if changer is not None:
                self.key_changers[changer][node] = None
        elif node.is_merge:
            self.merges[node] = None

    def build(self, config: Mapping[str, Any]) -> Topology:
        """Optimise the graph, write it to the topology and return the topology."""
        self._merge_sources()
        chosen = optimizations(config)
        if "reuse.ktable.source.topics" in chosen:
            for node in self._nodes:
                if isinstance(node, TableSourceGraphNode):
                    node.reuses_topic = True
        if "merge.repartition.topics" in chosen:
            merge_repartition_topics(self)
        if "single.store.self.join" in chosen:
            rewrite_self_joins(self.root)
        self._drop_null_keys()
        self._enable_versioned_semantics()
        self._write()
        self.topology.check_copartitioning()
        return self.topology

    def new_repartition(self, topic: str, like: RepartitionGraphNode) -> RepartitionGraphNode:
        """Return a repartition node of a topic that replaces several ones."""
        node = RepartitionGraphNode(
            RepartitionNames(topic, self.new_name), like.key_serde, like.value_serde, optimizable=True
        )
        node.names.topic = topic
        return node

    def rename_copartitioned(self, name: str, new_name: str) -> None:
        """Put the source of the new repartition topic in the place of one that it replaces."""
        for group in self.topology.copartition_groups:
            if name in group:
                group.remove(name)
                group.add(new_name)

    def _merge_sources(self) -> None:
        """Make one source of sources with equal topics."""
        sources: dict[object, SourceGraphNode] = {}
        for node in list(self.root.children):
            if not isinstance(node, SourceGraphNode):
                continue
            for topic in [node.topics] if not isinstance(node.topics, list | tuple) else node.topics:
                key = node.subscription if not isinstance(topic, str) else topic
                first = sources.setdefault(key, node)
                if first is node:
                    continue
                if first.subscription != node.subscription:
                    raise TopologyError(
                        f"sources {first.name} and {node.name} both read topic {topic}, and differ in other topics: "
                        "expected equal topics"
                    )
                first.merge(node)
                if node in self.root.children:
                    self.root.remove_child(node)

    def _drop_null_keys(self) -> None:
        """Drop records without a key before repartition topics, unless an outer join downstream accepts them."""
        keeps: dict[GraphNode, bool] = {}

        def visit(node: GraphNode) -> bool:
            """Return whether a node, or one downstream of it, accepts records without a key."""
            if node not in keeps:
                keeps[node] = False
                below = [visit(child) or child.relaxes_null_keys for child in node.children]
                keeps[node] = any(below)
            return keeps[node]

        visit(self.root)
        for node, kept in keeps.items():
            if isinstance(node, RepartitionGraphNode) and not kept:
                node.drops_null_keys = True

    def _enable_versioned_semantics(self) -> None:
        for node in self._nodes:
            for parent in node.parents:
                if self._is_versioned(parent):
                    node.enable_versioned_semantics(parent.name)
            if isinstance(node, SuppressGraphNode) and all(self._is_versioned(parent) for parent in node.parents):
                raise TopologyError(
                    f"suppress {node.name} follows a versioned table: expected a table without versions"
                )

    def _is_versioned(self, node: GraphNode) -> bool:
        if node.output_versioned is not None:
            return node.output_versioned
        return node is not self.root and all(self._is_versioned(parent) for parent in node.parents)

    def _write(self) -> None:
        """Write the nodes in the order of their priorities, each after its parents."""
        queue: PriorityQueue[GraphNode] = PriorityQueue(lambda node: node.priority)
        queue.offer(self.root)
        self.root.written = False
        while queue:
            node = queue.poll()
            if not node.written and all(parent.written for parent in node.parents):
                node.write(self.topology)
                node.written = True
            for child in node.children:
                queue.offer(child)


def key_changing_parent(node: GraphNode) -> GraphNode | None:
    """Return the operation above a node that changes keys, unless one between them changes values."""
    changer = find_upstream(node, lambda one: one.key_changing)
    nearest = find_upstream(node, lambda one: one.key_changing or one.value_changing)
    return changer if nearest is changer else None


def find_upstream(node: GraphNode, matches: Any) -> GraphNode | None:
    """Return the first node that matches: the node itself, its parents, or their parents, depth first."""
    if matches(node):
        return node
    for parent in node.parents:
        if matches(parent):
            return parent
        found = find_upstream(parent, matches)
        if found is not None:
            return found
    return None
