"""Where a stream, a table or a group stands in the graph. The operations of the DSL work on these values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pybroker.streams.columns.expressions import Column
from pybroker.streams.columns.projection import Projection
from pybroker.streams.dsl.graph import GraphNode, RepartitionGraphNode, RepartitionNames
from pybroker.streams.dsl.graph_builder import GraphBuilder
from pybroker.streams.operators.table import Table
from pybroker.streams.serdes import AnySerde


class Origin(msgspec.Struct):
    """A stream in the graph (`AbstractStream`)."""

    name: str
    """The name of the node of the topology that forwards its records."""
    graph: GraphBuilder
    node: GraphNode
    sources: frozenset[str]
    """The source nodes of its subtopology. A join requires equal numbers of partitions of their topics."""
    key_serde: AnySerde = None
    value_serde: AnySerde = None
    repartition_required: bool = False
    """Whether the key can have changed since the records were partitioned."""
    join_repartition: RepartitionGraphNode | None = None
    """The repartition topic of this stream's joins. Several joins share it."""

    def then(
        self, node: GraphNode, key_serde: AnySerde, value_serde: AnySerde, *, repartition: bool | None = None
    ) -> Origin:
        """Add a node below this stream, and return the stream of its results."""
        self.graph.add(node, self.node)
        required = self.repartition_required if repartition is None else repartition
        return Origin(node.name, self.graph, node, self.sources, key_serde, value_serde, required)


class TableOrigin(msgspec.Struct):
    """A table in the graph: its stream of changes, and the operator that has its values."""

    origin: Origin
    table: Table


class Grouping(msgspec.Struct):
    """A stream that is grouped for aggregations (`GroupedStreamAggregateBuilder`)."""

    origin: Origin
    name: str | None
    """The name of the repartition topic, if the program gives one."""
    repartition: RepartitionGraphNode | None = None
    """The repartition topic of the first aggregation. Later ones share it if it has a given name."""

    def repartitioned(self, store: str) -> tuple[GraphNode, frozenset[str]]:
        """Add the repartition topic before an aggregation if it is required.

        Args:
            store: the name of the aggregation's store, which names the topic unless the program does.

        Returns:
            The node to aggregate below, and the source nodes of its subtopology.
        """
        origin = self.origin
        if not origin.repartition_required:
            return origin.node, origin.sources
        names = RepartitionNames(self.name or store, origin.graph.new_name)
        if self.repartition is None or self.name is None:
            self.repartition = RepartitionGraphNode(names, origin.key_serde, origin.value_serde, optimizable=True)
        origin.graph.add(self.repartition, origin.node)
        return self.repartition, frozenset({names.source})


def copartitioned(origins: Iterable[Origin]) -> frozenset[str]:
    """Require equal numbers of partitions of the sources of several streams, and return these sources."""
    every = list(origins)
    sources = frozenset().union(*(origin.sources for origin in every))
    every[0].graph.topology.copartition_sources(sources)
    return sources


def keyed_mapper(function: Callable[..., Any], with_key: bool) -> Callable[[Any, Any], Any]:
    """Return a mapper of key and value. Without `with_key` the function receives the value only."""
    if with_key or isinstance(function, Column | Projection):
        return function
    return lambda _key, value: function(value)


def keyed_joiner(joiner: Callable[..., Any], with_key: bool) -> Callable[[Any, Any, Any], Any]:
    """Return a joiner of key, left value and right value. Without `with_key` it receives the values only."""
    if with_key:
        return joiner
    return lambda _key, left, right: joiner(left, right)
