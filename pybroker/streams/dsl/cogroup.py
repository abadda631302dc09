"""Aggregations of several grouped streams into one table (KIP-150), as changes of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybroker.streams.dsl.aggregations import (
    Aggregator,
    AnyWindows,
    Initializer,
    Merger,
    grace_of,
    windowed_serde,
    windowed_supplier,
)
from pybroker.streams.dsl.graph import GraphNode, ProcessorGraphNode, RepartitionGraphNode, RepartitionNames
from pybroker.streams.dsl.materialized import Materialization
from pybroker.streams.dsl.origin import Grouping, Origin, TableOrigin, copartitioned
from pybroker.streams.operators.stream_aggregation import StreamAggregate
from pybroker.streams.operators.table import Table, TableSupplier
from pybroker.streams.operators.table_stateless import TablePassThrough
from pybroker.streams.windows import EmitStrategy

Options = Mapping[str, Any]


class Cogrouping:
    """Grouped streams, each with its aggregator (`CogroupedStreamAggregateBuilder`)."""

    def __init__(self, grouping: Grouping, aggregator: Aggregator) -> None:
        self.groups: list[tuple[Grouping, Aggregator]] = [(grouping, aggregator)]
        self._parents: dict[int, GraphNode] = {}
        """The node to aggregate below, by the identity of the group. Several aggregations share it."""

    def add(self, grouping: Grouping, aggregator: Aggregator) -> None:
        """Add a grouped stream. A stream that is added again gets the new aggregator."""
        for at, (known, _) in enumerate(self.groups):
            if known is grouping:
                self.groups[at] = (grouping, aggregator)
                return
        self.groups.append((grouping, aggregator))

    def aggregated(
        self,
        initializer: Initializer,
        windows: AnyWindows | None,
        merger: Merger | None,
        options: Options,
    ) -> TableOrigin:
        """Add an aggregation of all streams into one store."""
        graph = self.groups[0][0].origin.graph
        store = Materialization(options, graph, "COGROUPKSTREAM-AGGREGATE-")
        suppliers = _Suppliers(store, windows, initializer, merger)
        self._repartition(store)
        nodes: list[ProcessorGraphNode] = []
        for number, (grouping, aggregator) in enumerate(self.groups):
            name = graph.suffixed_or_new(options.get("name"), f"-cogroup-agg-{number}", "COGROUPKSTREAM-AGGREGATE-")
            node = ProcessorGraphNode(name, suppliers.of(aggregator))
            node.output_versioned = store.is_versioned if windows is None else None
            node.grace_ms = None if windows is None else grace_of(windows)
            nodes.append(node)
            graph.add(node, self._parents[id(grouping)])
        return self._merged(nodes, store, windows, options)

    def _merged(
        self, nodes: list[ProcessorGraphNode], store: Materialization, windows: AnyWindows | None, options: Options
    ) -> TableOrigin:
        graph = self.groups[0][0].origin.graph
        name = graph.suffixed_or_new(options.get("name"), "-cogroup-merge", "COGROUPKSTREAM-MERGE-")
        assert store.store is not None, "an aggregation has a store"
        suppliers = [node.supplier for node in nodes if isinstance(node.supplier, TableSupplier)]
        supplier = TablePassThrough(suppliers, store.store)
        node = ProcessorGraphNode(name, supplier)
        graph.add(node, *nodes)
        key_serde = store.key_serde if windows is None else windowed_serde(windows, store.key_serde)
        origin = Origin(name, graph, node, frozenset({name}), key_serde, store.value_serde)
        return TableOrigin(origin, Table(supplier, store.queryable_name))

    def _repartition(self, store: Materialization) -> None:
        """Add the repartition topics that the streams need, and require equal numbers of partitions."""
        for grouping, _ in self.groups:
            origin = grouping.origin
            if not origin.repartition_required:
                self._parents[id(grouping)] = origin.node
                continue
            names = RepartitionNames(grouping.name or str(store.store), origin.graph.new_name)
            if id(grouping) not in self._parents:
                node = RepartitionGraphNode(names, origin.key_serde, origin.value_serde, optimizable=True)
                origin.graph.add(node, origin.node)
                self._parents[id(grouping)] = node
        copartitioned(grouping.origin for grouping, _ in self.groups)


class _Suppliers:
    """Makes the operators of one cogrouped aggregation, which share a store."""

    def __init__(
        self, store: Materialization, windows: AnyWindows | None, initializer: Initializer, merger: Merger | None
    ) -> None:
        self._store = store
        self._windows = windows
        self._initializer = initializer
        self._merger = merger
        self._builder = store.key_value_builder() if windows is None else None

    def of(self, aggregator: Aggregator) -> TableSupplier:
        """Return the operator of one stream."""
        if self._windows is None:
            assert self._builder is not None, "an aggregation without windows has a key-value store"
            return StreamAggregate(self._builder, self._initializer, aggregator)
        functions = (self._initializer, aggregator, self._merger)
        return windowed_supplier(self._windows, self._store, EmitStrategy.ON_WINDOW_UPDATE, functions)
