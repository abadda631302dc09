"""Aggregations of grouped streams and grouped tables, with and without windows, as changes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pybroker.streams.dsl.graph import GroupedTableRepartitionGraphNode, ProcessorGraphNode
from pybroker.streams.dsl.materialized import Materialization, has_materialized
from pybroker.streams.dsl.origin import Grouping, Origin, TableOrigin
from pybroker.streams.operators.session_aggregation import StreamSessionWindowAggregate
from pybroker.streams.operators.sliding_aggregation import StreamSlidingWindowAggregate
from pybroker.streams.operators.stream_aggregation import StreamAggregate, StreamReduce
from pybroker.streams.operators.table import Table, TableSupplier
from pybroker.streams.operators.table_grouping import TableAggregate, TableReduce
from pybroker.streams.operators.window_aggregation import StreamWindowAggregate
from pybroker.streams.serdes import INT64, AnySerde, DeferredSerde, Serde, session_windowed, time_windowed
from pybroker.streams.windows import EmitStrategy, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

Options = Mapping[str, Any]
Initializer = Callable[[], Any]
Aggregator = Callable[[Any, Any, Any], Any]
"""`(key, value, aggregate) -> aggregate`."""
Reducer = Callable[[Any, Any], Any]
"""`(aggregate, value) -> aggregate`."""
Merger = Callable[[Any, Any, Any], Any]
"""`(key, aggregate, aggregate) -> aggregate` of two sessions that a record connects."""
AnyWindows = TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows

COUNT = "KSTREAM-AGGREGATE-"
AGGREGATE = "KSTREAM-AGGREGATE-"
REDUCE = "KSTREAM-REDUCE-"


def zero() -> int:
    """Return the initial count."""
    return 0


def none() -> None:
    """Return the initial aggregate of a reduction."""


def add_one(key: Any, value: Any, count: int) -> int:
    """Return the count after one more record."""
    del key, value
    return count + 1


def subtract_one(key: Any, value: Any, count: int) -> int:
    """Return the count after one record less."""
    del key, value
    return count - 1


def add_counts(key: Any, one: int, other: int) -> int:
    """Return the count of two sessions that become one."""
    del key
    return one + other


def from_reducer(reducer: Reducer) -> Aggregator:
    """Return the aggregator of a reduction: the first value is the first aggregate."""
    return lambda _key, value, aggregate: value if aggregate is None else reducer(aggregate, value)


def materialized(grouping: Grouping, options: Options, prefix: str, value_serde: AnySerde = None) -> Materialization:
    """Return the store of an aggregation of a stream, whose keys have the serde of the group."""
    store = Materialization(options, grouping.origin.graph, prefix)
    return store.with_defaults(grouping.origin.key_serde, value_serde)


def skip_unused_name(grouping: Grouping, options: Options, prefix: str) -> None:
    """Advance the counter as Kafka does for a count with options of its store and without a name of it."""
    if has_materialized(options) and "store" not in options:
        grouping.origin.graph.new_store_name(prefix)


def counted(grouping: Grouping, options: Options) -> TableOrigin:
    """Add a count of each key."""
    skip_unused_name(grouping, options, COUNT)
    store = materialized(grouping, options, COUNT, INT64)
    return _aggregated(grouping, StreamAggregate(store.key_value_builder(), zero, add_one), store, options, COUNT)


def reduced(grouping: Grouping, reducer: Reducer, options: Options) -> TableOrigin:
    """Add a reduction of the values of each key."""
    store = materialized(grouping, options, REDUCE, grouping.origin.value_serde)
    return _aggregated(grouping, StreamReduce(store.key_value_builder(), reducer), store, options, REDUCE)


def aggregated(grouping: Grouping, initializer: Initializer, aggregator: Aggregator, options: Options) -> TableOrigin:
    """Add an aggregation of the values of each key."""
    store = materialized(grouping, options, AGGREGATE)
    supplier = StreamAggregate(store.key_value_builder(), initializer, aggregator)
    return _aggregated(grouping, supplier, store, options, AGGREGATE)


def _aggregated(
    grouping: Grouping, supplier: TableSupplier, store: Materialization, options: Options, prefix: str
) -> TableOrigin:
    node = ProcessorGraphNode(grouping.origin.graph.name_or_new(options.get("name"), prefix), supplier)
    node.output_versioned = store.is_versioned
    return _table(grouping, node, store, store.key_serde)


def _table(grouping: Grouping, node: ProcessorGraphNode, store: Materialization, key_serde: AnySerde) -> TableOrigin:
    """Add the node of an aggregation behind its repartition topic, and return its table."""
    assert store.store is not None, "an aggregation has a store"
    parent, sources = grouping.repartitioned(store.store)
    graph = grouping.origin.graph
    graph.add(node, parent)
    assert isinstance(node.supplier, TableSupplier), "an aggregation results in a table"
    origin = Origin(node.name, graph, node, sources, key_serde, store.value_serde)
    return TableOrigin(origin, Table(node.supplier, store.queryable_name))


class WindowedGrouping:
    """A grouped stream with windows: the table of each aggregation has a key for each window."""

    def __init__(self, grouping: Grouping, windows: AnyWindows) -> None:
        self.grouping = grouping
        self.windows = windows
        self.emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE

    def counted(self, options: Options) -> TableOrigin:
        """Add a count of each key and window."""
        if not isinstance(self.windows, SlidingWindows):
            skip_unused_name(self.grouping, options, COUNT)
        store = materialized(self.grouping, options, COUNT, INT64)
        return self._add(store, (zero, add_one, add_counts), options, COUNT)

    def reduced(self, reducer: Reducer, options: Options) -> TableOrigin:
        """Add a reduction of the values of each key and window."""
        store = materialized(self.grouping, options, REDUCE, self.grouping.origin.value_serde)

        def merge(key: Any, one: Any, other: Any) -> Any:
            del key
            return other if one is None else reducer(one, other)

        return self._add(store, (none, from_reducer(reducer), merge), options, REDUCE)

    def aggregated(
        self, initializer: Initializer, aggregator: Aggregator, merger: Merger | None, options: Options
    ) -> TableOrigin:
        """Add an aggregation of the values of each key and window. Sessions need a merger."""
        store = materialized(self.grouping, options, AGGREGATE)
        return self._add(store, (initializer, aggregator, merger), options, AGGREGATE)

    def _add(
        self,
        store: Materialization,
        functions: tuple[Initializer, Aggregator, Merger | None],
        options: Options,
        prefix: str,
    ) -> TableOrigin:
        graph = self.grouping.origin.graph
        name = graph.name_or_new(options.get("name"), prefix)
        node = ProcessorGraphNode(name, windowed_supplier(self.windows, store, self.emit, functions))
        node.output_versioned = False
        node.grace_ms = grace_of(self.windows)
        return _table(self.grouping, node, store, windowed_serde(self.windows, store.key_serde))


def windowed_supplier(
    windows: AnyWindows,
    store: Materialization,
    emit: EmitStrategy,
    functions: tuple[Initializer, Aggregator, Merger | None],
) -> TableSupplier:
    """Return the operator of an aggregation over windows: initializer, aggregator and, for sessions, merger."""
    initializer, aggregator, merger = functions
    if isinstance(windows, SessionWindows):
        assert merger is not None, "an aggregation of sessions has a merger"
        builder = store.session_builder(windows, emit)
        return StreamSessionWindowAggregate(windows, builder, emit, initializer, aggregator, merger)
    if isinstance(windows, SlidingWindows):
        builder = store.sliding_builder(windows, emit)
        return StreamSlidingWindowAggregate(windows, builder, emit, initializer, aggregator)
    return StreamWindowAggregate(windows, store.window_builder(windows, emit), emit, initializer, aggregator)


def grace_of(windows: AnyWindows) -> int:
    """Return how long after its end a window stays open, in milliseconds. A session ends with its last record."""
    if isinstance(windows, SessionWindows):
        return windows.gap_ms + windows.grace_ms
    return windows.grace_ms


def windowed_serde(windows: AnyWindows, key_serde: AnySerde) -> AnySerde:
    """Return the serde of windowed keys around the serde of the keys."""
    if isinstance(windows, SessionWindows):
        wrap: Callable[[Serde[Any]], Serde[Any]] = session_windowed
    else:
        size = windows.time_difference_ms if isinstance(windows, SlidingWindows) else windows.size_ms

        def wrap(inner: Serde[Any]) -> Serde[Any]:
            return time_windowed(inner, size)

    if isinstance(key_serde, Serde):
        return wrap(key_serde)
    return DeferredSerde(lambda defaults: wrap(defaults.resolve_key(key_serde)))


class TableGrouping:
    """A table that is grouped by another key (`KGroupedTableImpl`)."""

    def __init__(self, origin: Origin, name: str | None) -> None:
        self.origin = origin
        self.name = name
        self._repartition: GroupedTableRepartitionGraphNode | None = None

    def counted(self, options: Options) -> TableOrigin:
        """Add a count of the rows of each group."""
        store = Materialization(options, self.origin.graph, "KTABLE-AGGREGATE-")
        store.with_defaults(self.origin.key_serde, INT64)
        supplier = TableAggregate(store.key_value_builder(), zero, add_one, subtract_one)
        return self._add(supplier, store, options, "KTABLE-AGGREGATE-")

    def reduced(self, adder: Reducer, subtractor: Reducer, options: Options) -> TableOrigin:
        """Add a reduction: the subtractor removes the old value of a row, and the adder adds the new one."""
        store = Materialization(options, self.origin.graph, "KTABLE-AGGREGATE-")
        store.with_defaults(self.origin.key_serde, self.origin.value_serde)
        return self._add(TableReduce(store.key_value_builder(), adder, subtractor), store, options, "KTABLE-REDUCE-")

    def aggregated(
        self, initializer: Initializer, adder: Aggregator, subtractor: Aggregator, options: Options
    ) -> TableOrigin:
        """Add an aggregation: the subtractor removes the old value of a row, and the adder adds the new one."""
        store = Materialization(options, self.origin.graph, "KTABLE-AGGREGATE-")
        store.with_defaults(self.origin.key_serde)
        supplier = TableAggregate(store.key_value_builder(), initializer, adder, subtractor)
        return self._add(supplier, store, options, "KTABLE-AGGREGATE-")

    def _add(self, supplier: TableSupplier, store: Materialization, options: Options, prefix: str) -> TableOrigin:
        graph, name = self.origin.graph, options.get("name")
        sink = graph.suffixed_or_new(name, "-sink", "KSTREAM-SINK-")
        source = graph.suffixed_or_new(name, "-source", "KSTREAM-SOURCE-")
        node = ProcessorGraphNode(graph.name_or_new(name, prefix), supplier)
        node.output_versioned = store.is_versioned
        if self._repartition is None or self.name is None:
            topic = f"{self.name or store.store}-repartition"
            serdes = (self.origin.key_serde, self.origin.value_serde)
            self._repartition = GroupedTableRepartitionGraphNode(sink, source, topic, serdes)
        graph.add(self._repartition, self.origin.node)
        graph.add(node, self._repartition)
        origin = Origin(node.name, graph, node, frozenset({source}), store.key_serde, store.value_serde)
        return TableOrigin(origin, Table(supplier, store.queryable_name))
