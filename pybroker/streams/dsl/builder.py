"""StreamsBuilder: the entry of the DSL (`org.apache.kafka.streams.StreamsBuilder`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from pybroker.streams.dsl import options, tables
from pybroker.streams.dsl.graph import GlobalStoreGraphNode, SourceGraphNode, StateStoreGraphNode
from pybroker.streams.dsl.graph_builder import GraphBuilder
from pybroker.streams.dsl.options import checked
from pybroker.streams.dsl.origin import Origin
from pybroker.streams.dsl.streams import GlobalKTable, KStream, KTable
from pybroker.streams.errors import TopologyError
from pybroker.streams.processor import ProcessorSupplier
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.topology.topology import Topology


class StreamsBuilder:
    """Builds a topology: sources first, then operations on the streams and tables that they return.

    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(str.split)
    words.group_by(lambda _, word: word).count(store="counts").to_stream().to("counts", value_serde=INT64)
    topology = builder.build()
    """

    def __init__(self) -> None:
        self._graph = GraphBuilder()
        self._built: Topology | None = None

    def stream(
        self, topics: str | Sequence[str] | re.Pattern[str], **given: Unpack[options.Consumed]
    ) -> KStream[Any, Any]:
        """Read one topic, several topics, or all topics whose names a pattern matches completely."""
        chosen = checked(given, options.Consumed, "stream")
        names = [topics] if isinstance(topics, str) else topics
        if not isinstance(names, re.Pattern):
            names = tuple(dict.fromkeys(names))
            for name in names:
                check_topic(name)
        graph = self._open()
        name = graph.name_or_new(chosen.get("name"), "KSTREAM-SOURCE-")
        node = SourceGraphNode(name, names, tables.source_options(chosen))
        graph.add(node, graph.root)
        key_serde, value_serde = chosen.get("key_serde"), chosen.get("value_serde")
        return KStream(Origin(name, graph, node, frozenset({name}), key_serde, value_serde))

    def table(self, topic: str, **given: Unpack[options.ConsumedMaterialized]) -> KTable[Any, Any]:
        """Read a topic as a table: the latest value of each key. Records without a key are skipped."""
        check_topic(topic)
        chosen = checked(given, options.ConsumedMaterialized, "table")
        return KTable(tables.from_topic(self._open(), topic, chosen))

    def global_table(self, topic: str, **given: Unpack[options.ConsumedMaterialized]) -> GlobalKTable[Any, Any]:
        """Read all partitions of a topic as a table in every instance."""
        check_topic(topic)
        chosen = checked(given, options.ConsumedMaterialized, "global_table")
        return GlobalKTable(tables.global_from_topic(self._open(), topic, chosen))

    def add_state_store(self, builder: StoreBuilder) -> StreamsBuilder:
        """Add a store for `process`, `process_values` and `transform_values`, which name it."""
        graph = self._open()
        graph.add(StateStoreGraphNode(builder), graph.root)
        return self

    def add_global_store(
        self, builder: StoreBuilder, topic: str, supplier: ProcessorSupplier, **given: Unpack[options.Consumed]
    ) -> StreamsBuilder:
        """Add a store that a processor fills in every instance, with all partitions of a topic."""
        check_topic(topic)
        chosen = checked(given, options.Consumed, "add_global_store")
        graph = self._open()
        names = tables.source_names(graph, chosen.get("name"))
        node = GlobalStoreGraphNode(builder, topic, names, supplier, tables.source_options(chosen))
        graph.add(node, graph.root)
        return self

    def build(self, config: Mapping[str, Any] | None = None) -> Topology:
        """Return the topology. `topology.optimization` of the configuration names its optimisations.

        Raises:
            TopologyError: the topology is invalid. The message names the node, the store or the topic.
        """
        if self._built is None:
            self._built = self._graph.build(config or {})
        return self._built

    def _open(self) -> GraphBuilder:
        if self._built is not None:
            raise TopologyError("the topology is built already: add its sources and operations before build()")
        return self._graph


def check_topic(topic: str) -> None:
    """Raise TopologyError if a name cannot be that of a topic."""
    if not isinstance(topic, str):
        raise TopologyError(f"invalid topic {topic!r}: expected a str")
    options.check_name(topic, "topic", "the source")
