"""Joins of streams and tables by their key, as changes of the graph. `foreign_key.py` has those by another key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pybroker.streams.dsl.graph import (
    ProcessorGraphNode,
    RepartitionGraphNode,
    RepartitionNames,
    StreamJoinGraphNode,
    StreamTableJoinGraphNode,
    TableJoinGraphNode,
)
from pybroker.streams.dsl.materialized import Materialization, has_materialized
from pybroker.streams.dsl.origin import Origin, TableOrigin, copartitioned, keyed_joiner
from pybroker.streams.errors import TopologyError
from pybroker.streams.operators.stateless import PassThrough
from pybroker.streams.operators.stream_join import (
    JoinWindowStore,
    LeftSideJoin,
    RightSideJoin,
    SelfJoin,
    TimeTrackerSupplier,
    reverse_joiner,
)
from pybroker.streams.operators.stream_table_join import StreamGlobalTableJoin, StreamTableJoin
from pybroker.streams.operators.table import Table
from pybroker.streams.operators.table_join import (
    InnerTableJoin,
    LeftTableJoin,
    OuterTableJoin,
    RightTableJoin,
    TableJoinMerger,
    TableTableJoin,
    reverse_value_joiner,
)
from pybroker.streams.serdes import AnySerde
from pybroker.streams.state import builders
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.windows import JoinWindows, milliseconds

Options = Mapping[str, Any]
Outer = tuple[bool, bool]
"""Whether records of the left side, and of the right side, that have no match are forwarded."""


def repartitioned_for_join(origin: Origin, name: str, key_serde: AnySerde, value_serde: AnySerde) -> Origin:
    """Send a stream through a repartition topic before a join. Joins of one stream share the topic."""
    key_serde = origin.key_serde if key_serde is None else key_serde
    value_serde = origin.value_serde if value_serde is None else value_serde
    # The numbers are used up for each join, also for one that shares the topic.
    names = RepartitionNames(name, origin.graph.new_name)
    if origin.join_repartition is None or origin.name != name:
        origin.join_repartition = RepartitionGraphNode(names, key_serde, value_serde, optimizable=True)
        origin.graph.add(origin.join_repartition, origin.node)
    return Origin(
        names.source, origin.graph, origin.join_repartition, frozenset({names.source}), key_serde, value_serde
    )


def streams_joined(
    left: Origin, right: Origin, joiner: Callable[..., Any], windows: JoinWindows, outer: Outer, options: Options
) -> Origin:
    """Add a join of two streams within windows."""
    name, key_serde = options.get("name"), options.get("key_serde")
    if left.repartition_required:
        topic = left.name if name is None else f"{name}-left"
        left = repartitioned_for_join(left, topic, key_serde, options.get("value_serde"))
    if right.repartition_required:
        topic = right.name if name is None else f"{name}-right"
        right = repartitioned_for_join(right, topic, key_serde, options.get("other_value_serde"))
    sources = copartitioned([left, right])
    keyed = keyed_joiner(joiner, options.get("with_key", False))
    node = _StreamJoin(left, right, windows, outer, options).add(keyed)
    return Origin(node.name, left.graph, node, sources, key_serde)


class _StreamJoin:
    """Builds the nodes and stores of one join of two streams (`KStreamImplJoin`)."""

    def __init__(self, left: Origin, right: Origin, windows: JoinWindows, outer: Outer, options: Options) -> None:
        self.left = left
        self.right = right
        self.windows = windows
        self.left_outer, self.right_outer = outer
        self.options = options
        logging = options.get("logging", True)
        self.logging = logging is not False
        self.log_config: dict[str, str] = dict(logging) if isinstance(logging, Mapping) else {}

    def add(self, joiner: Callable[[Any, Any, Any], Any]) -> StreamJoinGraphNode:
        """Add the nodes and return the one of the join."""
        graph, name = self.left.graph, self.options.get("name")
        suffixes = (
            "-outer-this-join" if self.right_outer else "-this-join",
            "-outer-other-join" if self.left_outer else "-other-join",
        )
        windowed = (
            graph.suffixed_or_new(name, "-this-windowed", "KSTREAM-WINDOWED-"),
            graph.suffixed_or_new(name, "-other-windowed", "KSTREAM-WINDOWED-"),
        )
        generated = (
            graph.new_name("KSTREAM-OUTERTHIS-" if self.right_outer else "KSTREAM-JOINTHIS-"),
            graph.new_name("KSTREAM-OUTEROTHER-" if self.left_outer else "KSTREAM-JOINOTHER-"),
        )
        names = generated if name is None else (name + suffixes[0], name + suffixes[1])
        merge = graph.suffixed_or_new(name, "-merge", "KSTREAM-MERGE-")
        this, other = self._window_stores(generated, suffixes)
        shared = self._outer_store(generated[0]) if self.left_outer else None
        for origin, node_name, builder in ((self.left, windowed[0], this), (self.right, windowed[1], other)):
            graph.add(ProcessorGraphNode(node_name, JoinWindowStore(builder)), origin.node)
        tracker = TimeTrackerSupplier()
        left = LeftSideJoin(self.windows, joiner, self.left_outer, tracker, other, shared)
        right = RightSideJoin(self.windows, reverse_joiner(joiner), self.right_outer, tracker, this, shared)
        own = SelfJoin(this, self.windows, joiner, self.windows.size_ms + self.windows.grace_ms)
        node = StreamJoinGraphNode(windowed, ((names[0], left), (names[1], right)), (merge, PassThrough()), own)
        node.relaxes_null_keys = self.left_outer or self.right_outer
        graph.add(node, self.left.node, self.right.node)
        return node

    def _window_stores(
        self, generated: tuple[str, str], suffixes: tuple[str, str]
    ) -> tuple[StoreBuilder, StoreBuilder]:
        base, serdes = self.options.get("store"), ("value_serde", "other_value_serde")
        stores = [
            builders.window_store(
                f"{name if base is None else base + suffix}-store",
                self.windows.size_ms + self.windows.grace_ms,
                self.windows.size_ms,
                self.options.get("key_serde"),
                self.options.get(serde),
                retain_duplicates=True,
            )
            .with_logged_headers()
            .with_logging(self.logging, {**self.log_config, "cleanup.policy": "delete"})
            for name, suffix, serde in zip(generated, suffixes, serdes, strict=True)
        ]
        return stores[0], stores[1]

    def _outer_store(self, generated: str) -> StoreBuilder:
        base = self.options.get("store")
        if base is not None:
            name = base + ("-outer-shared-join" if self.right_outer else "-left-shared-join")
        else:
            name = f"KSTREAM-OUTERSHARED-{generated.rpartition('-')[2]}"
        store = builders.outer_join_store(
            f"{name}-store",
            self.options.get("key_serde"),
            self.options.get("value_serde"),
            self.options.get("other_value_serde"),
        )
        return store.with_logging(self.logging, self.log_config)


def stream_table_joined(
    stream: Origin, table: TableOrigin, joiner: Callable[..., Any], left: bool, options: Options
) -> Origin:
    """Add a join of a stream with a table."""
    name, key_serde = options.get("name"), options.get("key_serde")
    if stream.repartition_required:
        stream = repartitioned_for_join(stream, name or stream.name, key_serde, options.get("value_serde"))
    sources = copartitioned([stream, table.origin])
    graph = stream.graph
    node_name = graph.name_or_new(name, "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-")
    key_serde = stream.key_serde if key_serde is None else key_serde
    buffer, grace = None, options.get("grace")
    grace_ms = None if grace is None else milliseconds("grace", grace)
    if grace_ms is not None:
        if table.origin.node.output_versioned is False:
            raise TopologyError(
                f"join {node_name} has a grace, and the table is not versioned: expected history_retention"
            )
        value_serde = options.get("value_serde", stream.value_serde)
        buffer = builders.join_buffer(f"{node_name}-Buffer", grace_ms, key_serde, value_serde)
    getters = table.table.value_getter_supplier()
    keyed = keyed_joiner(joiner, options.get("with_key", False))
    supplier = StreamTableJoin(getters, keyed, left, grace_ms, buffer)
    node = StreamTableJoinGraphNode(node_name, supplier, getters.store_names, grace_ms)
    graph.add(node, stream.node)
    node.relaxes_null_keys = left
    return Origin(node_name, graph, node, sources, key_serde)


def global_table_joined(
    stream: Origin,
    table: Table,
    functions: tuple[Callable[[Any, Any], Any], Callable[..., Any]],
    left: bool,
    options: Options,
) -> Origin:
    """Add a join of a stream with a global table: key selector and joiner."""
    selector, joiner = functions
    node_name = stream.graph.name_or_new(options.get("name"), "KSTREAM-LEFTJOIN-")
    keyed = keyed_joiner(joiner, options.get("with_key", False))
    node = ProcessorGraphNode(node_name, StreamGlobalTableJoin(table.value_getter_supplier(), keyed, selector, left))
    node.relaxes_null_keys = left
    return stream.then(node, stream.key_serde, None)


def tables_joined(
    left: TableOrigin, right: TableOrigin, joiner: Callable[[Any, Any], Any], outer: Outer, options: Options
) -> TableOrigin:
    """Add a join of two tables by their key."""
    graph, name = left.origin.graph, options.get("name")
    store = Materialization(options, graph, "KTABLE-MERGE-") if has_materialized(options) else None
    merge_name = graph.name_or_new(name, "KTABLE-MERGE-")
    sources = copartitioned([left.origin, right.origin])
    left_outer, right_outer = outer
    if left_outer:
        left.table.enable_sending_old_values(True)
    if right_outer:
        right.table.enable_sending_old_values(True)
    builder = None
    if store is not None:
        builder = store.with_defaults(left.origin.key_serde).key_value_builder()
    this, other = _table_sides(left.table, right.table, joiner, outer)
    this_name = graph.suffixed_or_new(name, "-join-this", "KTABLE-JOINTHIS-")
    other_name = graph.suffixed_or_new(name, "-join-other", "KTABLE-JOINOTHER-")
    merger = TableJoinMerger(this, other, None if store is None else store.store, builder)
    node = TableJoinGraphNode(
        (merge_name, merger),
        ((this_name, this), (other_name, other)),
        (left.origin.name, right.origin.name),
        (left.table.value_getter_supplier().store_names, right.table.value_getter_supplier().store_names),
    )
    node.output_versioned = store is not None and store.is_versioned
    graph.add(node, left.origin.node)
    graph.add(node, right.origin.node)
    key_serde = left.origin.key_serde if store is None else store.key_serde
    origin = Origin(merge_name, graph, node, sources, key_serde, None if store is None else store.value_serde)
    return TableOrigin(origin, Table(merger, None if store is None else store.store))


def _table_sides(
    left: Table, right: Table, joiner: Callable[[Any, Any], Any], outer: Outer
) -> tuple[TableTableJoin, TableTableJoin]:
    """Return the operators for the changes of the left-hand and of the right-hand table."""
    reverse = reverse_value_joiner(joiner)
    if outer == (True, True):
        return OuterTableJoin(left, right, joiner), OuterTableJoin(right, left, reverse)
    if outer == (True, False):
        return LeftTableJoin(left, right, joiner), RightTableJoin(right, left, reverse)
    return InnerTableJoin(left, right, joiner), InnerTableJoin(right, left, reverse)
