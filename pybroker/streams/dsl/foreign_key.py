"""Joins of two tables by a key that is computed from the left-hand table's rows (KIP-213)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pybroker.streams.dsl.graph import ProcessorGraphNode, SinkGraphNode, SourceGraphNode
from pybroker.streams.dsl.materialized import Materialization
from pybroker.streams.dsl.origin import Origin, TableOrigin, keyed_mapper
from pybroker.streams.operators.foreign_key_join import (
    ForeignTableJoin,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
from pybroker.streams.operators.foreign_key_serdes import CombinedKeySchema, ForeignKeySerdes
from pybroker.streams.operators.foreign_key_values import SubscriptionResponseWrapper
from pybroker.streams.operators.table import Table
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.serdes import BYTES
from pybroker.streams.state import builders
from pybroker.streams.topology.nodes import Partitioner

Options = Mapping[str, Any]

JOIN = "KTABLE-FK-JOIN-"
REGISTRATION = f"{JOIN}SUBSCRIPTION-REGISTRATION-"
PROCESSOR = f"{JOIN}SUBSCRIPTION-PROCESSOR-"


def joined_on(
    left: TableOrigin,
    right: TableOrigin,
    functions: tuple[Callable[..., Any], Callable[[Any, Any], Any]],
    is_left: bool,
    options: Options,
) -> TableOrigin:
    """Add a join on a foreign key: extractor of the foreign key, and joiner of the values."""
    extractor, joiner = functions
    right.table.enable_sending_old_values(True)
    left.table.enable_sending_old_values(True)
    keyed = keyed_mapper(extractor, options.get("with_key", False))
    return _ForeignKeyJoin(left, right, options).add(keyed, joiner, is_left)


class _ForeignKeyJoin:
    """Builds the nodes, topics and stores of one join.

    The left-hand table sends subscriptions to the partition of the foreign key. They are stored there, and each change
    of the right-hand table is sent as a response to the partitions of the subscribed rows.
    """

    def __init__(self, left: TableOrigin, right: TableOrigin, options: Options) -> None:
        self.left = left
        self.right = right
        self.options = options
        self.graph = left.origin.graph
        self.serdes = ForeignKeySerdes(
            left.origin.key_serde, right.origin.key_serde, left.origin.value_serde, right.origin.value_serde
        )

    def add(
        self, extractor: Callable[[Any, Any], Any], joiner: Callable[[Any, Any], Any], is_left: bool
    ) -> TableOrigin:
        """Add the nodes and return the table of results."""
        schema = CombinedKeySchema(self.serdes)
        source = self._add_subscriptions(SubscriptionSend(extractor, self.serdes, is_left))
        store_name = self._name("-subscription-store", f"{JOIN}SUBSCRIPTION-STATE-STORE-")
        store = builders.subscription_store(store_name, BYTES, self.serdes.subscription)
        receive = self._processor("-subscription-receive", PROCESSOR, SubscriptionReceive(store, schema))
        self.graph.add(receive, source)
        getters = self.right.table.value_getter_supplier()
        subscribe = self._processor("-subscription-join-foreign", PROCESSOR, SubscriptionJoin(getters, self.serdes))
        subscribe.stores = getters.store_names
        self.graph.add(subscribe, receive)
        foreign = self._processor("-foreign-join-subscription", PROCESSOR, ForeignTableJoin(store, schema))
        self.graph.add(foreign, self.right.origin.node)
        response = self._add_responses(subscribe, foreign)
        sources = self.left.origin.sources | {response.name}
        self.graph.topology.copartition_sources(sources)
        own = self.left.table.value_getter_supplier()
        resolver = self._processor(
            "-subscription-response-resolver",
            f"{JOIN}SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-",
            ResponseJoin(own, self.serdes, joiner, is_left),
        )
        resolver.stores = own.store_names
        self.graph.add(resolver, response)
        return self._add_result(resolver, sources)

    def _name(self, suffix: str, prefix: str) -> str:
        return self.graph.suffixed_or_new(self.options.get("name"), suffix, prefix)

    def _processor(self, suffix: str, prefix: str, supplier: Any) -> ProcessorGraphNode:
        return ProcessorGraphNode(self._name(suffix, prefix), supplier)

    def _add_subscriptions(self, send: SubscriptionSend) -> SourceGraphNode:
        """Add the topic of subscriptions, which is partitioned as the right-hand table."""
        topic = f"{self._name('-subscription-registration', REGISTRATION)}-topic"
        self.graph.topology.add_internal_topic(topic)
        sender = self._processor("-subscription-registration-processor", REGISTRATION, send)
        self.graph.add(sender, self.left.origin.node)
        keys, values = self.right.origin.key_serde, self.serdes.subscription
        sink = SinkGraphNode(
            self._name("-subscription-registration-sink", "KTABLE-SINK-"),
            topic,
            {"key_serde": keys, "value_serde": values, "partitioner": self._by_key("other_partitioner")},
        )
        self.graph.add(sink, sender)
        name = self._name("-subscription-registration-source", "KTABLE-SOURCE-")
        source = SourceGraphNode(name, [topic], {"key_serde": keys, "value_serde": values})
        self.graph.add(source, sink)
        self.graph.topology.copartition_sources(self.right.origin.sources | {source.name})
        return source

    def _add_responses(self, *senders: ProcessorGraphNode) -> SourceGraphNode:
        """Add the topic of responses, which is partitioned as the left-hand table."""
        topic = f"{self._name('-subscription-response', f'{JOIN}SUBSCRIPTION-RESPONSE-')}-topic"
        self.graph.topology.add_internal_topic(topic)
        keys, values = self.left.origin.key_serde, self.serdes.response
        sink = SinkGraphNode(
            self._name("-subscription-response-sink", "KTABLE-SINK-"),
            topic,
            {
                "key_serde": keys,
                "value_serde": values,
                "partitioner": self._by_key("partitioner") or _primary_partition,
            },
        )
        for sender in senders:
            self.graph.add(sink, sender)
        name = self._name("-subscription-response-source", "KTABLE-SOURCE-")
        source = SourceGraphNode(name, [topic], {"key_serde": keys, "value_serde": values})
        self.graph.add(source, sink)
        return source

    def _by_key(self, option: str) -> Partitioner | None:
        """Return the program's partitioner, which gets no value: the topics have values that it does not know."""
        partitioner: Partitioner | None = self.options.get(option)
        if partitioner is None:
            return None

        def by_key(topic: str, key: Any, value: Any, partitions: int) -> int | Collection[int] | None:
            del value
            return partitioner(topic, key, None, partitions)

        return by_key

    def _add_result(self, resolver: ProcessorGraphNode, sources: frozenset[str]) -> TableOrigin:
        name = self._name("-result", f"{JOIN}OUTPUT-")
        store = Materialization(self.options, self.graph, f"{JOIN}OUTPUT-")
        store.with_defaults(self.left.origin.key_serde)
        supplier = TableSource(store.key_value_builder(), store.queryable_name)
        node = ProcessorGraphNode(name, supplier)
        node.output_versioned = store.is_versioned
        self.graph.add(node, resolver)
        origin = Origin(name, self.graph, node, sources, self.left.origin.key_serde, store.value_serde)
        return TableOrigin(origin, Table(supplier, store.store))


def _primary_partition(topic: str, key: Any, value: SubscriptionResponseWrapper, partitions: int) -> int | None:
    """Return the partition of the row that subscribed."""
    del topic, key, partitions
    return value.primary_partition
