"""The logical graph that the DSL builds before it is optimised and written to a topology.

A node of the graph writes one or several nodes of the topology: a join of two streams is one node here and three
there. Names, the order of counters and the shape of the graph equal Kafka's, so that its optimisations apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pybroker.client.java.murmur2 import partition_of
from pybroker.streams.errors import TopologyError
from pybroker.streams.operators.stateless import StreamFilter
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.processor import ProcessorSupplier
from pybroker.streams.serdes import AnySerde, Serde, changed
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.timestamps import fail_on_invalid_timestamp
from pybroker.streams.topology.nodes import Partitioner, TopicExtractor
from pybroker.streams.topology.topology import SinkOptions, SourceOptions, Topology


class GraphNode:
    """A node of the logical graph. Parents and children keep their order of insertion."""

    key_changing = False
    """Whether the operation can change keys."""
    value_changing = False
    """Whether the operation can change values."""
    is_merge = False
    relaxes_null_keys = False
    """Whether the node is a left or outer join, which accepts records without a key."""
    output_versioned: bool | None = None
    """Whether the result is a versioned table; None if that follows from the parents."""
    grace_ms: int | None = None
    """The grace of a windowed aggregation, in milliseconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.priority = 0
        """The order in which nodes are written. It is set when the node is added to the graph."""
        self.written = False
        self.children: dict[GraphNode, None] = {}
        self.parents: dict[GraphNode, None] = {}

    def add_child(self, child: GraphNode) -> None:
        """Connect a child. Nothing changes if it is connected already."""
        self.children[child] = None
        child.parents[self] = None

    def remove_child(self, child: GraphNode) -> None:
        """Disconnect a child."""
        del self.children[child]
        del child.parents[self]

    def clear_children(self) -> None:
        """Disconnect all children."""
        for child in self.children:
            del child.parents[self]
        self.children.clear()

    @property
    def parent_names(self) -> list[str]:
        """The names of the parents, which are names of nodes in the topology."""
        return [parent.name for parent in self.parents]

    def write(self, topology: Topology) -> None:
        """Add the nodes of the topology that this node stands for."""

    def enable_versioned_semantics(self, parent: str) -> None:
        """Let the operator read the versioned table of a parent. Most operators have nothing to do."""


class SourceGraphNode(GraphNode):
    """A stream that is read from topics or from a pattern."""

    def __init__(self, name: str, topics: Sequence[str] | re.Pattern[str], options: SourceOptions) -> None:
        super().__init__(name)
        self.topics = topics
        self.options = options

    @property
    def subscription(self) -> tuple[object, ...]:
        """The topics, or the pattern and its flags. Two sources with equal subscriptions become one."""
        if isinstance(self.topics, re.Pattern):
            return ("pattern", self.topics.pattern, self.topics.flags)
        return ("topics", *sorted(set(self.topics)))

    def merge(self, other: SourceGraphNode) -> None:
        """Take over the children of a source of the same topics.

        Raises:
            TopologyError: the two sources reset offsets differently.
        """
        mine, others = self.options.get("offset_reset"), other.options.get("offset_reset")
        if mine != others:
            raise TopologyError(
                f"sources {self.name} and {other.name} read the same topics with offset_reset {mine!r} and {others!r}: "
                "expected equal values"
            )
        for child in list(other.children):
            other.remove_child(child)
            self.add_child(child)

    def write(self, topology: Topology) -> None:
        """Add the source."""
        topology.add_source(self.name, self.topics, **self.options)


class TableSourceGraphNode(GraphNode):
    """A table that is read from a topic."""

    def __init__(self, names: tuple[str, str], topic: str, supplier: TableSource, options: SourceOptions) -> None:
        self.source_name, name = names
        super().__init__(name)
        self.topic = topic
        self.supplier = supplier
        self.options = options
        self.reuses_topic = False
        """Whether the topic is also the changelog of the table's store."""

    def write(self, topology: Topology) -> None:
        """Add the source, the processor and, if the table is materialized, its store."""
        topology.add_source(self.source_name, [self.topic], **self.options)
        topology.add_processor(self.name, self.supplier, self.source_name)
        if self.reuses_topic:
            for builder in self.supplier.stores():
                builder.disable_logging()
                topology.store_source_topics[builder.name] = self.topic


class GlobalStoreGraphNode(GraphNode):
    """A store that every instance fills with all partitions of a topic."""

    def __init__(
        self,
        builder: StoreBuilder,
        topic: str,
        names: tuple[str, str],
        supplier: ProcessorSupplier,
        options: SourceOptions,
    ) -> None:
        super().__init__(names[1])
        self.builder = builder
        self.topic = topic
        self.names = names
        self.supplier = supplier
        self.options = options

    def write(self, topology: Topology) -> None:
        """Add source, processor and store."""
        topology.add_global_store(self.builder, self.topic, self.names, self.supplier, **self.options)


class StateStoreGraphNode(GraphNode):
    """A store that is added without a processor."""

    def __init__(self, builder: StoreBuilder) -> None:
        super().__init__(builder.name)
        self.builder = builder

    def write(self, topology: Topology) -> None:
        """Add the store."""
        topology.add_state_store(self.builder)


class ProcessorGraphNode(GraphNode):
    """One processor, and the stores of other operators that it reads."""

    def __init__(self, name: str, supplier: ProcessorSupplier, stores: Sequence[str] = ()) -> None:
        super().__init__(name)
        self.supplier = supplier
        self.stores = stores
        self.fixed_key = False
        """Whether records must keep their keys."""

    def write(self, topology: Topology) -> None:
        """Add the processor and connect its stores."""
        topology.add_processor(self.name, self.supplier, *self.parent_names)
        if self.fixed_key:
            topology.require_fixed_key(self.name)
        if self.stores:
            topology.connect_processor_and_state_stores(self.name, *self.stores)

    def enable_versioned_semantics(self, parent: str) -> None:  # noqa: ARG002 - the only parent
        """Pass it to operators that can use a versioned table."""
        enable = getattr(self.supplier, "enable_versioned_semantics", None)
        if enable is not None:
            enable(True)


class SuppressGraphNode(ProcessorGraphNode):
    """A suppression, which cannot follow a versioned table."""

    output_versioned = False


class StreamTableJoinGraphNode(ProcessorGraphNode):
    """A join of a stream with a table. With a grace, the table must be versioned and keep its history that long."""

    def __init__(
        self, name: str, supplier: ProcessorSupplier, stores: Sequence[str], join_grace_ms: int | None
    ) -> None:
        super().__init__(name, supplier, stores)
        self.join_grace_ms = join_grace_ms

    def write(self, topology: Topology) -> None:
        """Add the processor and verify the store of the table."""
        super().write(topology)
        if self.join_grace_ms is None:
            return
        for store in self.stores:
            builder = topology.stores[store].builder
            if not builder.is_versioned:
                raise TopologyError(
                    f"join {self.name} has a grace of {self.join_grace_ms} ms, and store {store} is not versioned: "
                    "expected a table with history_retention"
                )
            if self.join_grace_ms > (builder.history_retention_ms or 0):
                raise TopologyError(
                    f"join {self.name} has a grace of {self.join_grace_ms} ms, and store {store} keeps "
                    f"{builder.history_retention_ms} ms: expected a history_retention of at least the grace"
                )


class SinkGraphNode(GraphNode):
    """A stream that is written to a topic."""

    def __init__(self, name: str, topic: str | TopicExtractor, options: SinkOptions) -> None:
        super().__init__(name)
        self.topic = topic
        self.options = options

    def write(self, topology: Topology) -> None:
        """Add the sink. Windows of one key go to one partition, as with Kafka's `WindowedStreamPartitioner`."""
        options, serde = self.options, self.options.get("key_serde")
        if options.get("partitioner") is None and isinstance(serde, Serde) and serde.partition_key is not None:
            options = {**options, "partitioner": _by_partition_key(serde.partition_key)}
        topology.add_sink(self.name, self.topic, *self.parent_names, **options)


def _by_partition_key(partition_key: Callable[[Any], bytes]) -> Partitioner:
    def choose(topic: str, key: Any, value: Any, partitions: int) -> int | None:
        del topic, value
        return None if key is None else partition_of(partition_key(key), partitions)

    return choose


class RepartitionNames:
    """The names of one repartition topic and of the nodes around it."""

    def __init__(self, prefix: str, new_name: Callable[[str], str]) -> None:
        self.topic = prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"
        # The counters advance even if the names are not used, so that later names equal Kafka's.
        sink, null_filter, source = (
            new_name("KSTREAM-SINK-"),
            new_name("KSTREAM-FILTER-"),
            new_name("KSTREAM-SOURCE-"),
        )
        if re.fullmatch(r"KSTREAM.*-[0-9]{10}", prefix):
            self.sink, self.filter, self.source = sink, null_filter, source
        else:
            self.sink, self.filter, self.source = (
                f"{self.topic}-sink",
                f"{self.topic}-filter",
                f"{self.topic}-source",
            )


class RepartitionGraphNode(GraphNode):
    """A topic between two subtopologies, so that records of a new key meet in one partition."""

    def __init__(
        self,
        names: RepartitionNames,
        key_serde: AnySerde,
        value_serde: AnySerde,
        *,
        optimizable: bool,
        partitions: int | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        super().__init__(names.source)
        self.names = names
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.optimizable = optimizable
        """Whether the topic can be merged with others. The topic of `repartition()` cannot."""
        self.partitions = partitions
        self.partitioner = partitioner
        self.drops_null_keys = False

    def write(self, topology: Topology) -> None:
        """Add the topic, the filter and the sink before it, and the source after it."""
        names = self.names
        topology.add_internal_topic(names.topic, self.partitions)
        predicate = _has_key if self.drops_null_keys else _every_record
        topology.add_processor(names.filter, StreamFilter(predicate, False), *self.parent_names)
        topology.add_sink(
            names.sink,
            names.topic,
            names.filter,
            key_serde=self.key_serde,
            value_serde=self.value_serde,
            partitioner=self.partitioner,
        )
        topology.add_source(
            names.source,
            [names.topic],
            key_serde=self.key_serde,
            value_serde=self.value_serde,
            timestamp_extractor=fail_on_invalid_timestamp,
        )


def _has_key(key: Any, value: Any) -> bool:
    del value
    return key is not None


def _every_record(key: Any, value: Any) -> bool:
    del key, value
    return True


class GroupedTableRepartitionGraphNode(GraphNode):
    """The topic before an aggregation of a table. Its values are changes: the new value, or the old one."""

    def __init__(self, sink: str, source: str, topic: str, serdes: tuple[AnySerde, AnySerde]) -> None:
        super().__init__(source)
        self.sink = sink
        self.topic = topic
        self.key_serde, self.value_serde = serdes

    def write(self, topology: Topology) -> None:
        """Add topic, sink and source."""
        serdes: SinkOptions = {"key_serde": self.key_serde, "value_serde": changed(self.value_serde)}
        topology.add_internal_topic(self.topic)
        topology.add_sink(self.sink, self.topic, *self.parent_names, **serdes)
        topology.add_source(
            self.name,
            [self.topic],
            key_serde=self.key_serde,
            value_serde=changed(self.value_serde),
            timestamp_extractor=fail_on_invalid_timestamp,
        )


NamedSupplier = tuple[str, ProcessorSupplier]
"""A processor and the name of its node."""


class StreamJoinGraphNode(GraphNode):
    """A join of two streams: a processor for each side, and one that merges their results."""

    def __init__(
        self,
        windowed: tuple[str, str],
        sides: tuple[NamedSupplier, NamedSupplier],
        merge: NamedSupplier,
        own: ProcessorSupplier,
    ) -> None:
        super().__init__(merge[0])
        self.windowed = windowed
        """The names of the nodes that fill the two window stores."""
        self.sides = sides
        self.merge = merge
        self.own = own
        """The processor of a join of a stream with itself, which needs one store."""
        self.is_self_join = False

    def write(self, topology: Topology) -> None:
        """Add the processors."""
        if self.is_self_join:
            topology.add_processor(self.name, self.own, self.windowed[0])
            return
        for (name, supplier), parent in zip(self.sides, self.windowed, strict=True):
            topology.add_processor(name, supplier, parent)
        topology.add_processor(self.name, self.merge[1], *(name for name, _ in self.sides))


class TableJoinGraphNode(GraphNode):
    """A join of two tables by their key: a processor for each side, and one that merges their results."""

    def __init__(
        self,
        merge: NamedSupplier,
        sides: tuple[NamedSupplier, NamedSupplier],
        tables: tuple[str, str],
        stores: tuple[Sequence[str], Sequence[str]],
    ) -> None:
        super().__init__(merge[0])
        self.merge = merge
        self.sides = sides
        self.tables = tables
        """The names of the nodes of the two tables."""
        self.stores = stores
        """The stores of the first and of the second table. Each side reads those of the other."""

    def write(self, topology: Topology) -> None:
        """Add the processors and connect their stores."""
        for (name, supplier), parent in zip(self.sides, self.tables, strict=True):
            topology.add_processor(name, supplier, parent)
        (this, _), (other, _) = self.sides
        topology.add_processor(self.name, self.merge[1], this, other)
        topology.connect_processor_and_state_stores(this, *self.stores[1])
        topology.connect_processor_and_state_stores(other, *self.stores[0])

    def enable_versioned_semantics(self, parent: str) -> None:
        """Pass it to the side of a versioned table."""
        for (_, supplier), table in zip(self.sides, self.tables, strict=True):
            enable = getattr(supplier, "enable_versioned_semantics", None)
            if table == parent and enable is not None:
                enable(True)
