"""Operations of tables, as changes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pybroker.streams.dsl.aggregations import TableGrouping
from pybroker.streams.dsl.graph import (
    GlobalStoreGraphNode,
    GraphNode,
    ProcessorGraphNode,
    RepartitionGraphNode,
    RepartitionNames,
    SuppressGraphNode,
    TableSourceGraphNode,
)
from pybroker.streams.dsl.graph_builder import GraphBuilder
from pybroker.streams.dsl.materialized import Materialization, has_materialized
from pybroker.streams.dsl.origin import Origin, TableOrigin, keyed_mapper
from pybroker.streams.dsl.stateless import with_selected_key
from pybroker.streams.errors import TopologyError
from pybroker.streams.operators import stateless
from pybroker.streams.operators.suppress import TableSuppress
from pybroker.streams.operators.table import Table, TableSupplier
from pybroker.streams.operators.table_grouping import TableRepartitionMap
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.operators.table_stateless import TableFilter, TableMapValues
from pybroker.streams.operators.table_transform_values import TableTransformValues
from pybroker.streams.serdes import AnySerde
from pybroker.streams.state import builders
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.suppressed import Suppressed
from pybroker.streams.topology.topology import SourceOptions

Options = Mapping[str, Any]


def source_options(options: Options) -> SourceOptions:
    """Return those options of a call that concern the source node."""
    return {
        "key_serde": options.get("key_serde"),
        "value_serde": options.get("value_serde"),
        "timestamp_extractor": options.get("timestamp_extractor"),
        "offset_reset": options.get("offset_reset"),
    }


def source_names(graph: GraphBuilder, name: str | None) -> tuple[str, str]:
    """Return the names of the source node and of the processor of a table."""
    source = graph.suffixed_or_new(name, "-source", "KSTREAM-SOURCE-")
    return source, graph.name_or_new(name, "KTABLE-SOURCE-")


def from_topic(graph: GraphBuilder, topic: str, options: Options) -> TableOrigin:
    """Add a table that is read from a topic."""
    store = Materialization(options, graph, f"{topic}-")
    names = source_names(graph, options.get("name"))
    supplier = TableSource(store.key_value_builder(), store.queryable_name)
    node = TableSourceGraphNode(names, topic, supplier, source_options(options))
    node.output_versioned = store.is_versioned
    graph.add(node, graph.root)
    origin = Origin(names[1], graph, node, frozenset({names[0]}), options.get("key_serde"), options.get("value_serde"))
    return TableOrigin(origin, Table(supplier, store.queryable_name))


def global_from_topic(graph: GraphBuilder, topic: str, options: Options) -> Table:
    """Add a table that every instance fills with all partitions of a topic."""
    store = Materialization(options, graph, f"{topic}-")
    if store.is_versioned:
        raise TopologyError(f"global table of topic {topic} cannot be versioned: remove history_retention")
    names = source_names(graph, options.get("name"))
    supplier = TableSource(store.key_value_builder(), store.store)
    graph.add(GlobalStoreGraphNode(supplier.builder, topic, names, supplier, source_options(options)), graph.root)
    return Table(supplier, store.store)


def from_stream(origin: Origin, options: Options) -> TableOrigin:
    """Add a table with the latest value of each key of a stream."""
    graph, name = origin.graph, options.get("name")
    node_name = graph.name_or_new(name, "KSTREAM-TOTABLE-")
    # Without options, the store has the serdes of the stream; with options, it has theirs or the defaults.
    inherited: dict[str, Any] = {"key_serde": origin.key_serde, "value_serde": origin.value_serde}
    store = Materialization(options if has_materialized(options) else inherited, graph, "KSTREAM-TOTABLE-")
    key_serde = origin.key_serde if store.key_serde is None else store.key_serde
    value_serde = origin.value_serde if store.value_serde is None else store.value_serde
    store.with_defaults(key_serde, value_serde)
    parent, sources = origin.node, origin.sources
    if origin.repartition_required:
        repartition = RepartitionGraphNode(
            RepartitionNames(node_name, graph.new_name), key_serde, value_serde, optimizable=True
        )
        graph.add(repartition, parent)
        parent, sources = repartition, frozenset({repartition.name})
    supplier = TableSource(store.key_value_builder(), store.queryable_name)
    node = ProcessorGraphNode(node_name, supplier)
    node.output_versioned = store.is_versioned
    graph.add(node, parent)
    return TableOrigin(
        Origin(node_name, graph, node, sources, key_serde, value_serde), Table(supplier, store.queryable_name)
    )


class _Derived:
    """The store, serdes and name of a table that is derived from another table's rows."""

    def __init__(self, table: TableOrigin, options: Options, prefix: str, *, same_values: bool) -> None:
        graph, given = table.origin.graph, has_materialized(options)
        self.store = Materialization(options)
        # Kafka uses up a number for the store that it does not make.
        if given and self.store.store is None and prefix != "KTABLE-TRANSFORMVALUES-":
            graph.new_store_name(prefix)
        self.store.with_defaults(table.origin.key_serde, table.origin.value_serde if same_values else None)
        self.builder: StoreBuilder | None = self.store.key_value_builder() if self.store.queryable else None
        self.name = graph.name_or_new(options.get("name"), prefix)
        self.output_versioned = self.store.is_versioned if given else None

    def table(self, parent: TableOrigin, supplier: TableSupplier, stores: tuple[str, ...] = ()) -> TableOrigin:
        """Add the operator below the parent and return its table."""
        node = ProcessorGraphNode(self.name, supplier, stores)
        node.output_versioned = self.output_versioned
        origin = parent.origin.then(node, self.store.key_serde, self.store.value_serde)
        return TableOrigin(origin, Table(supplier, self.store.queryable_name))


def filtered(table: TableOrigin, predicate: Callable[[Any, Any], bool], negate: bool, options: Options) -> TableOrigin:
    """Add a filter of rows."""
    derived = _Derived(table, options, "KTABLE-FILTER-", same_values=True)
    supplier = TableFilter(table.table, predicate, negate, derived.store.queryable_name, derived.builder)
    return derived.table(table, supplier)


def with_mapped_values(table: TableOrigin, mapper: Callable[..., Any], options: Options) -> TableOrigin:
    """Add a mapper of values."""
    derived = _Derived(table, options, "KTABLE-MAPVALUES-", same_values=False)
    keyed = keyed_mapper(mapper, options.get("with_key", False))
    supplier = TableMapValues(table.table, keyed, derived.store.queryable_name, derived.builder)
    return derived.table(table, supplier)


def with_transformed_values(
    table: TableOrigin, transformer: Callable[[], Any], stores: tuple[str, ...], options: Options
) -> TableOrigin:
    """Add a transformer of values, which can use state stores."""
    derived = _Derived(table, options, "KTABLE-TRANSFORMVALUES-", same_values=False)
    supplier = TableTransformValues(table.table, transformer, derived.store.queryable_name, derived.builder)
    return derived.table(table, supplier, stores)


def to_stream(table: TableOrigin, mapper: Callable[[Any, Any], Any] | None, options: Options) -> Origin:
    """Add the stream of a table's changes. With a mapper, the records have other keys."""
    graph = table.origin.graph
    name = graph.name_or_new(options.get("name"), "KTABLE-TOSTREAM-")
    node = ProcessorGraphNode(name, stateless.StreamMapValues(stateless.new_value))
    stream = table.origin.then(node, table.origin.key_serde, table.origin.value_serde, repartition=False)
    return stream if mapper is None else with_selected_key(stream, mapper, None)


def suppressed(table: TableOrigin, condition: Suppressed) -> TableOrigin:
    """Add a buffer that combines the changes of a key until the condition is met."""
    origin, graph = table.origin, table.origin.graph
    if origin.node.output_versioned:
        raise TopologyError(f"suppress follows the versioned table {origin.name}: expected a table without versions")
    name = condition.name or graph.new_name("KTABLE-SUPPRESS-")
    if condition.until_close:
        condition = condition.with_grace(_grace_above(origin.node, ""))
    store = graph.new_store_name("KTABLE-SUPPRESS-") if condition.name is None else f"{condition.name}-store"
    buffer = builders.suppress_buffer(store, origin.key_serde, origin.value_serde)
    buffer = buffer.with_logging(condition.buffer.logging, condition.buffer.log_config)
    supplier = TableSuppress(condition, buffer, table.table)
    node = SuppressGraphNode(name, supplier)
    graph.add(node, origin.node)
    result = Origin(name, graph, node, frozenset({origin.name}), origin.key_serde, origin.value_serde)
    return TableOrigin(result, Table(supplier, None))


def _grace_above(node: GraphNode, chain: str) -> int:
    """Return the largest grace of the windowed aggregations above a node, in milliseconds.

    Raises:
        TopologyError: a path to the sources has none.
    """
    if node.grace_ms is not None:
        return node.grace_ms
    path = f"{node.name}->{chain}" if chain else node.name
    if not node.parents:
        raise TopologyError(f"window close time is only defined for windowed computations: got [{path}]")
    return max(_grace_above(parent, path) for parent in node.parents)


def grouped(table: TableOrigin, mapper: Callable[[Any, Any], tuple[Any, Any]], options: Options) -> TableGrouping:
    """Add a mapper of rows to other keys and values, for an aggregation."""
    graph = table.origin.graph
    name = graph.name_or_new(options.get("name"), "KTABLE-SELECT-")
    node = ProcessorGraphNode(name, TableRepartitionMap(table.table, mapper))
    key_serde: AnySerde = options.get("key_serde")
    origin = table.origin.then(node, key_serde, options.get("value_serde"))
    table.table.enable_sending_old_values(True)
    return TableGrouping(origin, options.get("name"))
