"""The topology: sources, processors, sinks and stores, and how they are connected.

A topology is data. It is built by hand (Processor API) or by `StreamsBuilder`, and each runner makes running nodes of
it. It does no I/O and does not know a runner.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TypedDict, Unpack

from pybroker.streams.errors import TopologyError
from pybroker.streams.processor import ProcessorSupplier
from pybroker.streams.serdes import AnySerde
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.timestamps import TimestampExtractor
from pybroker.streams.topology.description import TopologyDescription, describe
from pybroker.streams.topology.node_groups import NodeGroups
from pybroker.streams.topology.nodes import (
    ConnectedStore,
    InternalTopic,
    Node,
    Partitioner,
    ProcessorNode,
    SinkNode,
    SourceNode,
    TopicExtractor,
)

OFFSET_RESETS = ("earliest", "latest", "none")


class SourceOptions(TypedDict, total=False):
    """Options of a source node."""

    key_serde: AnySerde
    value_serde: AnySerde
    timestamp_extractor: TimestampExtractor | None
    offset_reset: str | None


class SinkOptions(TypedDict, total=False):
    """Options of a sink node."""

    key_serde: AnySerde
    value_serde: AnySerde
    partitioner: Partitioner | None


class Topology:
    """A directed acyclic graph of nodes, and their state stores (`org.apache.kafka.streams.Topology`).

    Every method that adds something raises TopologyError and changes nothing if the topology would become invalid.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        """In the order of adding, which is a topological order: the parents of a node exist before it."""
        self.stores: dict[str, ConnectedStore] = {}
        self.global_stores: dict[str, ConnectedStore] = {}
        self.internal_topics: dict[str, InternalTopic] = {}
        self.store_source_topics: dict[str, str] = {}
        """Stores that have a source topic as changelog: global stores, and tables after optimisation."""
        self.copartition_groups: list[set[str]] = []
        """Source nodes whose topics must have equal numbers of partitions."""
        self._groups = NodeGroups()
        self._global_sources: set[str] = set()

    def add_source(
        self, name: str, topics: str | Sequence[str] | re.Pattern[str], **options: Unpack[SourceOptions]
    ) -> Topology:
        """Add a node that reads one topic, several topics, or all topics that a pattern matches completely."""
        self._check_name(name)
        reset = options.get("offset_reset")
        if reset is not None and reset not in OFFSET_RESETS:
            raise TopologyError(f"invalid offset_reset {reset!r} of source {name}: expected one of {OFFSET_RESETS}")
        if isinstance(topics, re.Pattern):
            for topic in self.source_topics():
                if topics.fullmatch(topic):
                    raise TopologyError(
                        f"pattern {topics.pattern!r} of source {name} matches topic {topic}, which another source reads"
                    )
            node = SourceNode(name, (), topics, **options)
        else:
            names = (topics,) if isinstance(topics, str) else tuple(topics)
            if not names:
                raise TopologyError(f"source {name} has no topics: expected at least one")
            for topic in names:
                self._check_topic(topic)
            node = SourceNode(name, names, None, **options)
        self.nodes[name] = node
        self._groups.add(name)
        return self

    def add_processor(self, name: str, supplier: ProcessorSupplier, *parents: str) -> Topology:
        """Add a node that processes what its parents forward. The supplier is called once for each task."""
        self._check_name(name)
        self._check_parents(name, parents)
        self.nodes[name] = ProcessorNode(name, supplier, parents)
        self._connect(name, parents)
        stores = getattr(supplier, "stores", None)
        if stores is not None:
            for builder in stores():
                self.add_state_store(builder, name)
        return self

    def require_fixed_key(self, processor: str) -> None:
        """Let a processor forward records with the key of the processed record only."""
        node = self.nodes[processor]
        if isinstance(node, ProcessorNode):
            node.fixed_key = True

    def add_sink(
        self, name: str, topic: str | TopicExtractor, *parents: str, **options: Unpack[SinkOptions]
    ) -> Topology:
        """Add a node that writes to a topic what its parents forward."""
        self._check_name(name)
        self._check_parents(name, parents)
        self.nodes[name] = SinkNode(name, topic, parents, **options)
        self._connect(name, parents)
        return self

    def add_state_store(self, builder: StoreBuilder, *processors: str) -> Topology:
        """Add a state store and connect it to processors. The same builder can be added again."""
        name = builder.name
        existing = self.stores.get(name)
        if existing is not None and existing.builder is not builder:
            raise TopologyError(f"store {name} is already added with another builder: store names must be unique")
        if name in self.global_stores:
            raise TopologyError(f"store {name} is already added as a global store: store names must be unique")
        if existing is None:
            self.stores[name] = ConnectedStore(builder)
        for processor in processors:
            self._connect_store(processor, name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> Topology:
        """Let a processor use stores. All processors of a store belong to one subtopology."""
        if not stores:
            raise TopologyError(f"no state stores to connect to processor {processor}: expected at least one name")
        if isinstance(self.nodes.get(processor), SourceNode | SinkNode):
            raise TopologyError(f"cannot connect state stores to {processor}: it is a source or a sink")
        for store in stores:
            self._connect_store(processor, store)
        return self

    def add_global_store(
        self,
        builder: StoreBuilder,
        topic: str,
        names: tuple[str, str],
        supplier: ProcessorSupplier,
        **options: Unpack[SourceOptions],
    ) -> Topology:
        """Add a store that every instance fills with all partitions of a topic.

        Args:
            builder: the store. Its changelog is the topic, and logging is switched off.
            topic: the source topic.
            names: the names of the source node and of the processor node.
            supplier: the processor that writes each record to the store.
            options: those of the source.
        """
        source, processor = names
        self._check_name(source)
        self._check_topic(topic)
        self._check_name(processor)
        if source == processor:
            raise TopologyError(f"source and processor of global store {builder.name} are both named {source}")
        if builder.name in self.stores or builder.name in self.global_stores:
            raise TopologyError(f"store {builder.name} is already added: store names must be unique")
        self.nodes[source] = SourceNode(source, (topic,), None, **options)
        self.nodes[processor] = ProcessorNode(processor, supplier, (source,), [builder.name])
        self._groups.add(source)
        self._connect(processor, (source,))
        self._global_sources.add(source)
        builder.disable_logging()
        self.global_stores[builder.name] = ConnectedStore(builder, [processor])
        self.store_source_topics[builder.name] = topic
        return self

    def add_internal_topic(self, name: str, partitions: int | None = None) -> None:
        """Declare a repartition topic."""
        self.internal_topics[name] = InternalTopic(name, partitions)

    def copartition_sources(self, sources: Collection[str]) -> None:
        """Require equal numbers of partitions of the topics of these source nodes."""
        self.copartition_groups.append(set(sources))

    def check_copartitioning(self) -> None:
        """Raise TopologyError if repartition topics of one join have different fixed numbers of partitions."""
        for group in self.copartition_groups:
            topics = {
                topic for name in group if isinstance(node := self.nodes.get(name), SourceNode) for topic in node.topics
            }
            fixed = {
                topic: internal.partitions
                for topic in topics
                if (internal := self.internal_topics.get(topic)) and internal.partitions is not None
            }
            if fixed and topics == fixed.keys() and len(set(fixed.values())) > 1:
                found = ", ".join(f"{topic}={partitions}" for topic, partitions in sorted(fixed.items()))
                raise TopologyError(f"following topics do not have the same number of partitions: [{found}]")

    def describe(self) -> TopologyDescription:
        """Return a description. `str()` of it is the text that Kafka's `Topology.describe()` prints."""
        return describe(self.nodes, [(names, self.is_global(names)) for names in self.subtopologies()])

    def subtopologies(self) -> list[list[str]]:
        """Return the names of the nodes of each subtopology. The index of a subtopology is its id."""
        return self._groups.in_order(self.nodes)

    def is_global(self, names: Collection[str]) -> bool:
        """Return whether a subtopology fills a global store."""
        return not self._global_sources.isdisjoint(names)

    def source_topics(self) -> list[str]:
        """Return the topics that sources name. Patterns are left out."""
        return [topic for node in self.nodes.values() if isinstance(node, SourceNode) for topic in node.topics]

    def _connect(self, name: str, parents: Sequence[str]) -> None:
        self._groups.add(name)
        self._groups.unite(name, parents)

    def _connect_store(self, processor: str, store: str) -> None:
        if store in self.global_stores:
            raise TopologyError(
                f"global store {store} is readable by every processor: do not connect it to {processor}"
            )
        connected = self.stores.get(store)
        if connected is None:
            raise TopologyError(f"store {store} is unknown: add it before it is connected to processor {processor}")
        node = self.nodes.get(processor)
        if not isinstance(node, ProcessorNode):
            raise TopologyError(f"processor {processor} is unknown: add it before store {store} is connected to it")
        if connected.users:
            self._groups.unite(connected.users[0], [processor])
        if processor not in connected.users:
            connected.users.append(processor)
        if store not in node.stores:
            node.stores.append(store)

    def _check_name(self, name: str) -> None:
        if not name:
            raise TopologyError("the name of a node is empty: expected letters, digits, '.', '_' or '-'")
        if name in self.nodes:
            raise TopologyError(f"node {name} is already added: node names must be unique")

    def _check_parents(self, name: str, parents: Sequence[str]) -> None:
        if not parents:
            raise TopologyError(f"node {name} has no parents: expected the name of at least one source or processor")
        for parent in parents:
            if parent == name:
                raise TopologyError(f"node {name} is its own parent: expected the name of another node")
            if parent not in self.nodes:
                raise TopologyError(f"parent {parent} of node {name} is unknown: add it before {name}")
            if isinstance(self.nodes[parent], SinkNode):
                raise TopologyError(f"sink {parent} cannot be the parent of node {name}")

    def _check_topic(self, topic: str) -> None:
        if not topic:
            raise TopologyError("a source topic is empty: expected a topic name")
        for node in self.nodes.values():
            if isinstance(node, SourceNode):
                if topic in node.topics:
                    raise TopologyError(f"topic {topic} is already read by source {node.name}")
                if node.pattern is not None and node.pattern.fullmatch(topic):
                    raise TopologyError(f"topic {topic} is already matched by the pattern of source {node.name}")
