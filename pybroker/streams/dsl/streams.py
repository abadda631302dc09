"""Streams, tables and their grouped forms: the classes of the DSL (`org.apache.kafka.streams.kstream`).

The classes are thin. Each method checks its options and calls a function of a sibling module, which changes the graph.
They stand in one module because each returns others: a stream can become a group, a group a table, a table a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar, Unpack

from pybroker.streams.dsl import foreign_key as foreign_keys
from pybroker.streams.dsl import joins, options, stateless, tables
from pybroker.streams.dsl.aggregations import (
    Aggregator,
    AnyWindows,
    Initializer,
    Merger,
    Reducer,
    TableGrouping,
    WindowedGrouping,
    aggregated,
    counted,
    reduced,
)
from pybroker.streams.dsl.branched import BranchedKStream
from pybroker.streams.dsl.cogroup import Cogrouping
from pybroker.streams.dsl.options import checked
from pybroker.streams.dsl.origin import Grouping, Origin, TableOrigin
from pybroker.streams.errors import TopologyError
from pybroker.streams.operators.table import Table
from pybroker.streams.processor import ProcessorSupplier
from pybroker.streams.suppressed import Suppressed
from pybroker.streams.topology.nodes import TopicExtractor
from pybroker.streams.windows import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Windowed,
)

K = TypeVar("K")
V = TypeVar("V")


class KStream(Generic[K, V]):
    """A stream of records. Each method adds an operation to the topology and returns the resulting stream.

    Predicates, mappers and actions receive `(key, value)`. Mappers of values receive the value; `with_key=True` adds
    the key before it.
    """

    def __init__(self, origin: Origin) -> None:
        self.origin = origin

    def filter(self, predicate: Callable[[K, V], bool], **given: Unpack[options.Named]) -> KStream[K, V]:
        """Keep the records for which the predicate is true."""
        return KStream(stateless.filtered(self.origin, predicate, False, checked(given, options.Named, "filter")))

    def filter_not(self, predicate: Callable[[K, V], bool], **given: Unpack[options.Named]) -> KStream[K, V]:
        """Keep the records for which the predicate is false."""
        return KStream(stateless.filtered(self.origin, predicate, True, checked(given, options.Named, "filter_not")))

    def select_key(self, mapper: Callable[[K, V], Any], **given: Unpack[options.Named]) -> KStream[Any, V]:
        """Give each record the key that the mapper returns. A later join or aggregation repartitions the stream."""
        name = checked(given, options.Named, "select_key").get("name")
        return KStream(stateless.with_selected_key(self.origin, mapper, name))

    def map(self, mapper: Callable[[K, V], tuple[Any, Any]], **given: Unpack[options.Named]) -> KStream[Any, Any]:
        """Replace each record by the pair that the mapper returns. A later join or aggregation repartitions."""
        return KStream(stateless.mapped(self.origin, mapper, False, checked(given, options.Named, "map")))

    def map_values(self, mapper: Callable[..., Any], **given: Unpack[options.WithKey]) -> KStream[K, Any]:
        """Replace each value by what the mapper returns. The key stays, so no repartitioning follows."""
        chosen = checked(given, options.WithKey, "map_values")
        return KStream(stateless.with_mapped_values(self.origin, mapper, False, chosen))

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[Any, Any]]], **given: Unpack[options.Named]
    ) -> KStream[Any, Any]:
        """Replace each record by any number of keys and values. A later join or aggregation repartitions."""
        return KStream(stateless.mapped(self.origin, mapper, True, checked(given, options.Named, "flat_map")))

    def flat_map_values(
        self, mapper: Callable[..., Iterable[Any]], **given: Unpack[options.WithKey]
    ) -> KStream[K, Any]:
        """Replace each value by any number of values. The key stays, so no repartitioning follows."""
        chosen = checked(given, options.WithKey, "flat_map_values")
        return KStream(stateless.with_mapped_values(self.origin, mapper, True, chosen))

    def peek(self, action: Callable[[K, V], object], **given: Unpack[options.Named]) -> KStream[K, V]:
        """Call an action for each record, and forward the record."""
        return KStream(stateless.observed(self.origin, action, True, checked(given, options.Named, "peek")))

    def foreach(self, action: Callable[[K, V], object], **given: Unpack[options.Named]) -> None:
        """Call an action for each record. The stream ends here."""
        stateless.observed(self.origin, action, False, checked(given, options.Named, "foreach"))

    def print(self, **given: Unpack[options.Printed]) -> None:
        """Print a line for each record, for example `[KSTREAM-SOURCE-0000000000]: jetty , shanghai`."""
        stateless.printed(self.origin, checked(given, options.Printed, "print"))

    def write_as_text(self, path: str | Path, **given: Unpack[options.Printed]) -> None:
        """Append the lines that `print` prints to a file, in UTF-8."""
        stateless.printed(self.origin, checked(given, options.Printed, "write_as_text"), path)

    def split(self, **given: Unpack[options.Named]) -> BranchedKStream[KStream[K, V]]:
        """Split the stream into branches. The name is the prefix of the names of the branches."""
        return BranchedKStream(self.origin, checked(given, options.Named, "split").get("name"), KStream)

    def merge(self, other: KStream[K, V], **given: Unpack[options.Named]) -> KStream[K, V]:
        """Merge two streams into one. There is no order between records of the two streams."""
        return KStream(stateless.merged(self.origin, other.origin, checked(given, options.Named, "merge")))

    def repartition(self, **given: Unpack[options.Repartitioned]) -> KStream[K, V]:
        """Send the stream through a repartition topic, with the number of partitions that is given."""
        return KStream(stateless.repartitioned(self.origin, checked(given, options.Repartitioned, "repartition")))

    def to(self, topic: str | TopicExtractor, **given: Unpack[options.Produced]) -> None:
        """Write the stream to a topic, or to the topic that an extractor `(key, value, context)` chooses."""
        stateless.written(self.origin, topic, checked(given, options.Produced, "to"))

    def process(self, supplier: ProcessorSupplier, *stores: str, **given: Unpack[options.Named]) -> KStream[Any, Any]:
        """Process each record by a `Processor` with the named stores. A later join or aggregation repartitions."""
        chosen = checked(given, options.Named, "process")
        return KStream(stateless.processed(self.origin, supplier, stores, False, chosen))

    def process_values(
        self, supplier: ProcessorSupplier, *stores: str, **given: Unpack[options.Named]
    ) -> KStream[K, Any]:
        """Process each record by a `FixedKeyProcessor`, which cannot change the key. No repartitioning follows."""
        chosen = checked(given, options.Named, "process_values")
        return KStream(stateless.processed(self.origin, supplier, stores, True, chosen))

    def to_table(self, **given: Unpack[options.NamedMaterialized]) -> KTable[K, V]:
        """Return a table with the latest value of each key. A value of None deletes the key."""
        return KTable(tables.from_stream(self.origin, checked(given, options.NamedMaterialized, "to_table")))

    def group_by_key(self, **given: Unpack[options.Grouped]) -> KGroupedStream[K, V]:
        """Group the records by their key, for an aggregation."""
        return KGroupedStream(stateless.grouped(self.origin, None, checked(given, options.Grouped, "group_by_key")))

    def group_by(self, selector: Callable[[K, V], Any], **given: Unpack[options.Grouped]) -> KGroupedStream[Any, V]:
        """Group the records by the key that the selector returns, for an aggregation."""
        return KGroupedStream(stateless.grouped(self.origin, selector, checked(given, options.Grouped, "group_by")))

    def join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        *arguments: Any,
        **given: Unpack[options.StreamJoined],
    ) -> KStream[K, Any]:
        """Join with a stream, a table or a global table, and forward the pairs that match.

        Args:
            other: the right-hand side.
            arguments: `joiner, windows` for a stream, `joiner` for a table, `key_selector, joiner` for a global table.
                The joiner receives the two values, and with `with_key=True` the key before them.
            given: names, serdes and stores. `grace` is for a versioned table.
        """
        return self._joined(other, arguments, (False, False), given, "join")

    def left_join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        *arguments: Any,
        **given: Unpack[options.StreamJoined],
    ) -> KStream[K, Any]:
        """Join as `join` does, and forward records of this stream that have no match, with None for the other value."""
        return self._joined(other, arguments, (True, False), given, "left_join")

    def outer_join(
        self, other: KStream[K, Any], *arguments: Any, **given: Unpack[options.StreamJoined]
    ) -> KStream[K, Any]:
        """Join two streams, and forward records of both that have no match, with None for the other value."""
        if not isinstance(other, KStream):
            raise TopologyError(f"invalid right-hand side {type(other).__name__} of outer_join: expected a KStream")
        return self._joined(other, arguments, (True, True), given, "outer_join")

    def _joined(
        self, other: Any, arguments: tuple[Any, ...], outer: joins.Outer, given: Any, operation: str
    ) -> KStream[K, Any]:
        """Call the join for the class of the right-hand side."""
        if isinstance(other, KStream):
            chosen = checked(given, options.StreamJoined, operation)
            joiner, windows = _arguments(arguments, ("joiner", "windows"), operation)
            return KStream(joins.streams_joined(self.origin, other.origin, joiner, windows, outer, chosen))
        chosen = checked(given, options.Joined, operation)
        if isinstance(other, KTable):
            (joiner,) = _arguments(arguments, ("joiner",), operation)
            return KStream(joins.stream_table_joined(self.origin, other.state, joiner, outer[0], chosen))
        functions = _arguments(arguments, ("key_selector", "joiner"), operation)
        return KStream(joins.global_table_joined(self.origin, other.table, functions, outer[0], chosen))


def _arguments(given: tuple[Any, ...], names: tuple[str, ...], operation: str) -> Any:
    """Return the positional arguments of a join.

    Raises:
        TopologyError: their number is wrong, or windows are no windows.
    """
    wrong_windows = "windows" in names and len(given) == len(names) and not isinstance(given[-1], JoinWindows)
    if len(given) != len(names) or wrong_windows:
        shown = ", ".join(type(one).__name__ for one in given)
        raise TopologyError(
            f"invalid arguments ({shown}) of {operation} after the other side: expected {', '.join(names)}"
        )
    return given


class KTable(Generic[K, V]):
    """A table: the latest value of each key of a stream of changes. A value of None means that the key has no row."""

    def __init__(self, state: TableOrigin) -> None:
        self.state = state

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store that can be queried, or None."""
        return self.state.table.queryable_name

    def filter(self, predicate: Callable[[K, V], bool], **given: Unpack[options.NamedMaterialized]) -> KTable[K, V]:
        """Keep the rows for which the predicate is true. A row for which it becomes false is deleted."""
        chosen = checked(given, options.NamedMaterialized, "filter")
        return KTable(tables.filtered(self.state, predicate, False, chosen))

    def filter_not(self, predicate: Callable[[K, V], bool], **given: Unpack[options.NamedMaterialized]) -> KTable[K, V]:
        """Keep the rows for which the predicate is false. A row for which it becomes true is deleted."""
        chosen = checked(given, options.NamedMaterialized, "filter_not")
        return KTable(tables.filtered(self.state, predicate, True, chosen))

    def map_values(self, mapper: Callable[..., Any], **given: Unpack[options.WithKeyMaterialized]) -> KTable[K, Any]:
        """Replace each value by what the mapper returns for the value, or for key and value with `with_key=True`."""
        chosen = checked(given, options.WithKeyMaterialized, "map_values")
        return KTable(tables.with_mapped_values(self.state, mapper, chosen))

    def transform_values(
        self, supplier: Callable[[], Any], *stores: str, **given: Unpack[options.NamedMaterialized]
    ) -> KTable[K, Any]:
        """Replace each value by what a `ValueTransformer` returns, which can use the named stores."""
        chosen = checked(given, options.NamedMaterialized, "transform_values")
        return KTable(tables.with_transformed_values(self.state, supplier, stores, chosen))

    def to_stream(self, mapper: Callable[[K, V], Any] | None = None, **given: Unpack[options.Named]) -> KStream[Any, V]:
        """Return the stream of changes. With a mapper `(key, value) -> key`, the records have other keys."""
        return KStream(tables.to_stream(self.state, mapper, checked(given, options.Named, "to_stream")))

    def print(self, **given: Unpack[options.Printed]) -> None:
        """Print a line for each change, for example `[KTABLE-SOURCE-0000000001]: jetty , (hangzhou<-null)`."""
        chosen = checked(given, options.Printed, "print")
        stateless.printed(self.state.origin, chosen, text=stateless.change_text)

    def suppress(self, condition: Suppressed) -> KTable[K, V]:
        """Combine the changes of a key until a time has passed or its window closes (KIP-328)."""
        return KTable(tables.suppressed(self.state, condition))

    def group_by(
        self, mapper: Callable[[K, V], tuple[Any, Any]], **given: Unpack[options.Grouped]
    ) -> KGroupedTable[Any, Any]:
        """Group the rows by the key that the mapper `(key, value) -> (key, value)` returns, for an aggregation."""
        return KGroupedTable(tables.grouped(self.state, mapper, checked(given, options.Grouped, "group_by")))

    def join(
        self, other: KTable[K, Any], joiner: Callable[[Any, Any], Any], **given: Unpack[options.NamedMaterialized]
    ) -> KTable[K, Any]:
        """Join two tables by their key. A row exists if both tables have the key."""
        chosen = checked(given, options.NamedMaterialized, "join")
        return KTable(joins.tables_joined(self.state, other.state, joiner, (False, False), chosen))

    def left_join(
        self, other: KTable[K, Any], joiner: Callable[[Any, Any], Any], **given: Unpack[options.NamedMaterialized]
    ) -> KTable[K, Any]:
        """Join two tables by their key. A row exists if this table has the key; the other value can be None."""
        chosen = checked(given, options.NamedMaterialized, "left_join")
        return KTable(joins.tables_joined(self.state, other.state, joiner, (True, False), chosen))

    def outer_join(
        self, other: KTable[K, Any], joiner: Callable[[Any, Any], Any], **given: Unpack[options.NamedMaterialized]
    ) -> KTable[K, Any]:
        """Join two tables by their key. A row exists if one of them has the key; the other value is None then."""
        chosen = checked(given, options.NamedMaterialized, "outer_join")
        return KTable(joins.tables_joined(self.state, other.state, joiner, (True, True), chosen))

    def join_on(
        self,
        other: KTable[Any, Any],
        foreign_key: Callable[..., Any],
        joiner: Callable[[Any, Any], Any],
        **given: Unpack[options.TableJoined],
    ) -> KTable[K, Any]:
        """Join with the row of another table whose key `foreign_key(value)` returns (KIP-213).

        With `with_key=True`, the extractor receives the key before the value.
        """
        chosen = checked(given, options.TableJoined, "join_on")
        return KTable(foreign_keys.joined_on(self.state, other.state, (foreign_key, joiner), False, chosen))

    def left_join_on(
        self,
        other: KTable[Any, Any],
        foreign_key: Callable[..., Any],
        joiner: Callable[[Any, Any], Any],
        **given: Unpack[options.TableJoined],
    ) -> KTable[K, Any]:
        """Join as `join_on` does, and keep rows whose foreign key has no row, with None for the other value."""
        chosen = checked(given, options.TableJoined, "left_join_on")
        return KTable(foreign_keys.joined_on(self.state, other.state, (foreign_key, joiner), True, chosen))


class GlobalKTable(Generic[K, V]):
    """A table that every instance has whole. Streams join it by any key, without repartitioning."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store that can be queried."""
        return self.table.queryable_name


class KGroupedStream(Generic[K, V]):
    """A stream that is grouped by key. Its aggregations are tables."""

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping

    def count(self, **given: Unpack[options.NamedMaterialized]) -> KTable[K, int]:
        """Count the records of each key. Records without a key or a value are skipped."""
        return KTable(counted(self.grouping, checked(given, options.NamedMaterialized, "count")))

    def reduce(self, reducer: Reducer, **given: Unpack[options.NamedMaterialized]) -> KTable[K, V]:
        """Combine the values of each key by `reducer(aggregate, value)`. The first value is the first aggregate."""
        return KTable(reduced(self.grouping, reducer, checked(given, options.NamedMaterialized, "reduce")))

    def aggregate(
        self, initializer: Initializer, aggregator: Aggregator, **given: Unpack[options.NamedMaterialized]
    ) -> KTable[K, Any]:
        """Combine the values of each key by `aggregator(key, value, aggregate)`, beginning with `initializer()`."""
        chosen = checked(given, options.NamedMaterialized, "aggregate")
        return KTable(aggregated(self.grouping, initializer, aggregator, chosen))

    def windowed_by(self, windows: AnyWindows) -> WindowedKStream[K, V]:
        """Group by windows of time too: `TimeWindows`, `UnlimitedWindows`, `SlidingWindows` or `SessionWindows`."""
        return WindowedKStream(WindowedGrouping(self.grouping, _windows(windows)))

    def cogroup(self, aggregator: Aggregator) -> CogroupedKStream[K]:
        """Begin an aggregation of several grouped streams into one table (KIP-150)."""
        return CogroupedKStream(Cogrouping(self.grouping, aggregator), None)


class WindowedKStream(Generic[K, V]):
    """A grouped stream with windows (`TimeWindowedKStream`, `SessionWindowedKStream`)."""

    def __init__(self, grouping: WindowedGrouping) -> None:
        self.grouping = grouping

    def emit_strategy(self, strategy: EmitStrategy) -> WindowedKStream[K, V]:
        """Choose whether results are forwarded on every update or when their window closes (KIP-825).

        Raises:
            TopologyError: the windows are unlimited and never close.
        """
        if strategy.on_window_close and isinstance(self.grouping.windows, UnlimitedWindows):
            raise TopologyError("unlimited windows never close: expected EmitStrategy.ON_WINDOW_UPDATE")
        self.grouping.emit = strategy
        return self

    def count(self, **given: Unpack[options.NamedMaterialized]) -> KTable[Windowed[K], int]:
        """Count the records of each key and window."""
        return KTable(self.grouping.counted(checked(given, options.NamedMaterialized, "count")))

    def reduce(self, reducer: Reducer, **given: Unpack[options.NamedMaterialized]) -> KTable[Windowed[K], V]:
        """Combine the values of each key and window by `reducer(aggregate, value)`."""
        return KTable(self.grouping.reduced(reducer, checked(given, options.NamedMaterialized, "reduce")))

    def aggregate(
        self,
        initializer: Initializer,
        aggregator: Aggregator,
        merger: Merger | None = None,
        **given: Unpack[options.NamedMaterialized],
    ) -> KTable[Windowed[K], Any]:
        """Combine the values of each key and window by `aggregator(key, value, aggregate)`.

        Sessions need a merger `(key, one, other) -> aggregate` for sessions that a record connects.
        """
        chosen = checked(given, options.NamedMaterialized, "aggregate")
        _check_merger(self.grouping.windows, merger)
        return KTable(self.grouping.aggregated(initializer, aggregator, merger, chosen))


class CogroupedKStream(Generic[K]):
    """Several grouped streams that are aggregated into one table, with or without windows."""

    def __init__(self, cogrouping: Cogrouping, windows: AnyWindows | None) -> None:
        self.cogrouping = cogrouping
        self.windows = windows

    def cogroup(self, stream: KGroupedStream[K, Any], aggregator: Aggregator) -> CogroupedKStream[K]:
        """Add a grouped stream and its aggregator `(key, value, aggregate)`."""
        self.cogrouping.add(stream.grouping, aggregator)
        return self

    def windowed_by(self, windows: AnyWindows) -> CogroupedKStream[K]:
        """Group by windows of time too."""
        return CogroupedKStream(self.cogrouping, _windows(windows))

    def aggregate(
        self, initializer: Initializer, merger: Merger | None = None, **given: Unpack[options.NamedMaterialized]
    ) -> KTable[Any, Any]:
        """Aggregate all streams into one table. Sessions need a merger of two aggregates."""
        _check_merger(self.windows, merger)
        chosen = checked(given, options.NamedMaterialized, "aggregate")
        return KTable(self.cogrouping.aggregated(initializer, self.windows, merger, chosen))


class KGroupedTable(Generic[K, V]):
    """A table that is grouped by another key. A change of a row subtracts its old value and adds its new one."""

    def __init__(self, grouping: TableGrouping) -> None:
        self.grouping = grouping

    def count(self, **given: Unpack[options.NamedMaterialized]) -> KTable[K, int]:
        """Count the rows of each group."""
        return KTable(self.grouping.counted(checked(given, options.NamedMaterialized, "count")))

    def reduce(self, adder: Reducer, subtractor: Reducer, **given: Unpack[options.NamedMaterialized]) -> KTable[K, V]:
        """Combine the values of each group by `adder(aggregate, new)` and `subtractor(aggregate, old)`."""
        return KTable(self.grouping.reduced(adder, subtractor, checked(given, options.NamedMaterialized, "reduce")))

    def aggregate(
        self,
        initializer: Initializer,
        adder: Aggregator,
        subtractor: Aggregator,
        **given: Unpack[options.NamedMaterialized],
    ) -> KTable[K, Any]:
        """Combine the values of each group by `adder(key, new, aggregate)` and `subtractor(key, old, aggregate)`."""
        chosen = checked(given, options.NamedMaterialized, "aggregate")
        return KTable(self.grouping.aggregated(initializer, adder, subtractor, chosen))


def _windows(windows: AnyWindows) -> AnyWindows:
    """Return the windows of a call.

    Raises:
        TopologyError: they are of another type, for example JoinWindows.
    """
    if not isinstance(windows, TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows):
        raise TopologyError(
            f"invalid windows {windows!r} of windowed_by: expected TimeWindows, UnlimitedWindows, SlidingWindows or "
            "SessionWindows"
        )
    return windows


def _check_merger(windows: AnyWindows | None, merger: Merger | None) -> None:
    """Raise TopologyError if sessions have no merger, or other windows have one."""
    if isinstance(windows, SessionWindows) != (merger is not None):
        expected = "a merger (key, one, other)" if merger is None else "no merger without SessionWindows"
        raise TopologyError(f"invalid merger {merger!r} of aggregate: expected {expected}")
