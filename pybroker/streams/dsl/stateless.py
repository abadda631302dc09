"""Operations of streams that keep no state, as changes of the graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pybroker.streams.dsl.graph import (
    GraphNode,
    ProcessorGraphNode,
    RepartitionGraphNode,
    RepartitionNames,
    SinkGraphNode,
)
from pybroker.streams.dsl.origin import Grouping, Origin, keyed_mapper
from pybroker.streams.errors import TopologyError
from pybroker.streams.operators import stateless
from pybroker.streams.processor import ProcessorSupplier
from pybroker.streams.topology.nodes import TopicExtractor

Options = Mapping[str, Any]


def filtered(origin: Origin, predicate: Callable[[Any, Any], bool], negate: bool, options: Options) -> Origin:
    """Add a filter, and return the stream behind it."""
    name = origin.graph.name_or_new(options.get("name"), "KSTREAM-FILTER-")
    node = ProcessorGraphNode(name, stateless.StreamFilter(predicate, negate))
    return origin.then(node, origin.key_serde, origin.value_serde)


def with_selected_key(origin: Origin, mapper: Callable[[Any, Any], Any], name: str | None) -> Origin:
    """Add a mapper of keys. The key serde cannot be kept."""
    node_name = origin.graph.name_or_new(name, "KSTREAM-KEY-SELECT-")
    node = ProcessorGraphNode(node_name, stateless.StreamMap(lambda key, value: (mapper(key, value), value)))
    node.key_changing = True
    return origin.then(node, None, origin.value_serde, repartition=True)


def mapped(origin: Origin, mapper: Callable[[Any, Any], Any], flat: bool, options: Options) -> Origin:
    """Add a mapper of keys and values. No serde can be kept."""
    name = origin.graph.name_or_new(options.get("name"), "KSTREAM-FLATMAP-" if flat else "KSTREAM-MAP-")
    node = ProcessorGraphNode(name, stateless.StreamFlatMap(mapper) if flat else stateless.StreamMap(mapper))
    node.key_changing = True
    return origin.then(node, None, None, repartition=True)


def with_mapped_values(origin: Origin, mapper: Callable[..., Any], flat: bool, options: Options) -> Origin:
    """Add a mapper of values. The value serde cannot be kept."""
    name = origin.graph.name_or_new(options.get("name"), "KSTREAM-FLATMAPVALUES-" if flat else "KSTREAM-MAPVALUES-")
    keyed = keyed_mapper(mapper, options.get("with_key", False))
    node = ProcessorGraphNode(name, stateless.StreamFlatMapValues(keyed) if flat else stateless.StreamMapValues(keyed))
    node.value_changing = True
    return origin.then(node, origin.key_serde, None)


def observed(origin: Origin, action: Callable[[Any, Any], object], forwards: bool, options: Options) -> Origin:
    """Add an action for each record, and return the stream behind it. Only `peek` forwards the records."""
    name = origin.graph.name_or_new(options.get("name"), "KSTREAM-PEEK-" if forwards else "KSTREAM-FOREACH-")
    node = ProcessorGraphNode(name, stateless.StreamForeach(action, forwards))
    return origin.then(node, origin.key_serde, origin.value_serde)


def _pair_text(key: Any, value: Any) -> str:
    return f"{_text(key)} , {_text(value)}"


def change_text(key: Any, change: Any) -> str:
    """Return the text that is printed for a change of a table, for example `jetty , (hangzhou<-null)`."""
    return f"{_text(key)} , ({_text(change.new_value)}<-{_text(change.old_value)})"


def _text(value: Any) -> str:
    return "null" if value is None else str(value)


def printed(
    origin: Origin,
    options: Options,
    path: str | Path | None = None,
    text: Callable[[Any, Any], str] = _pair_text,
) -> None:
    """Add a printer to standard output, or to the end of a file."""
    name = origin.graph.name_or_new(options.get("name"), "KSTREAM-PRINTER-")

    def open_file() -> Any:
        if path is not None:
            return Path(path).open("a", encoding="utf-8")
        return options.get("file", sys.stdout)

    mapper = options.get("mapper", text)
    supplier = stateless.StreamPrint(options.get("label", origin.name), mapper, open_file, owned=path is not None)
    origin.then(ProcessorGraphNode(name, supplier), None, None)


def merged(origin: Origin, other: Origin, options: Options) -> Origin:
    """Add a node below both streams. Neither serde is sure to be that of both."""
    name = origin.graph.name_or_new(options.get("name"), "KSTREAM-MERGE-")
    node: GraphNode = ProcessorGraphNode(name, stateless.PassThrough())
    node.is_merge = True
    origin.graph.add(node, origin.node, other.node)
    required = origin.repartition_required or other.repartition_required
    return Origin(name, origin.graph, node, origin.sources | other.sources, repartition_required=required)


def repartitioned(origin: Origin, options: Options) -> Origin:
    """Add a repartition topic that the optimiser keeps."""
    partitions = options.get("partitions")
    if partitions is not None and partitions < 1:
        raise TopologyError(f"invalid partitions {partitions} of repartition: expected at least 1")
    graph = origin.graph
    name = options.get("name") or graph.new_name("KSTREAM-REPARTITION-")
    value_serde = options.get("value_serde", origin.value_serde)
    node = RepartitionGraphNode(
        RepartitionNames(name, graph.new_name),
        options.get("key_serde"),
        value_serde,
        optimizable=False,
        partitions=partitions,
        partitioner=options.get("partitioner"),
    )
    graph.add(node, origin.node)
    key_serde = options.get("key_serde", origin.key_serde)
    return Origin(node.name, graph, node, frozenset({node.name}), key_serde, value_serde)


def written(origin: Origin, topic: str | TopicExtractor, options: Options) -> None:
    """Add a sink."""
    name = origin.graph.name_or_new(options.get("name"), "KSTREAM-SINK-")
    key_serde = options.get("key_serde", origin.key_serde)
    value_serde = options.get("value_serde", origin.value_serde)
    partitioner = options.get("partitioner")
    node = SinkGraphNode(name, topic, {"key_serde": key_serde, "value_serde": value_serde, "partitioner": partitioner})
    origin.graph.add(node, origin.node)


def processed(
    origin: Origin, supplier: ProcessorSupplier, stores: tuple[str, ...], fixed_key: bool, options: Options
) -> Origin:
    """Add a processor of the program. One with a fixed key keeps the key serde."""
    prefix = "KSTREAM-PROCESSVALUES-" if fixed_key else "KSTREAM-PROCESSOR-"
    # With a given name the counter does not advance, unlike for other operations.
    name = options.get("name") or origin.graph.new_name(prefix)
    node = ProcessorGraphNode(name, supplier, stores)
    node.fixed_key = fixed_key
    if fixed_key:
        return origin.then(node, origin.key_serde, None)
    return origin.then(node, None, None, repartition=True)


def branch(origin: Origin, splitter: GraphNode, name: str) -> Origin:
    """Add the node of one branch below the node that splits a stream."""
    # The counter advances, although the name of a branch does not use it.
    origin.graph.new_name(name)
    node = ProcessorGraphNode(name, stateless.PassThrough())
    origin.graph.add(node, splitter)
    required = origin.repartition_required
    return Origin(name, origin.graph, node, origin.sources, origin.key_serde, origin.value_serde, required)


def grouped(origin: Origin, selector: Callable[[Any, Any], Any] | None, options: Options) -> Grouping:
    """Group a stream by its key, or by the key that a selector returns."""
    name = options.get("name")
    value_serde = options.get("value_serde", origin.value_serde)
    if selector is not None:
        selected = with_selected_key(origin, selector, name)
        key_serde, required = options.get("key_serde"), True
    else:
        selected = origin
        key_serde, required = options.get("key_serde", origin.key_serde), origin.repartition_required
    group = Origin(
        selected.name,
        origin.graph,
        selected.node,
        origin.sources,
        key_serde,
        value_serde,
        repartition_required=required,
    )
    return Grouping(group, name)
