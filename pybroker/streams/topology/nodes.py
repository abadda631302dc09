"""The nodes of a topology as values. The runtime makes running nodes from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from pybroker.streams.errors import StreamsError
from pybroker.streams.processor import ProcessorSupplier
from pybroker.streams.records import RecordContext
from pybroker.streams.serdes import AnySerde, DefaultSerdes, Serde
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.timestamps import TimestampExtractor

TopicExtractor = Callable[[Any, Any, RecordContext], str]
"""`(key, value, record_context) -> topic`: chooses the topic of each record (`TopicNameExtractor`)."""
Partitioner = Callable[[str, Any, Any, int], int | Collection[int] | None]
"""`(topic, key, value, partitions) -> partition`. A collection multicasts; None stands for the default partitioner."""


class SourceNode(msgspec.Struct):
    """A node that reads topics."""

    name: str
    topics: tuple[str, ...]
    """Empty for a source that subscribes to a pattern."""
    pattern: re.Pattern[str] | None = None
    key_serde: AnySerde = None
    """None stands for the application's `default.key.serde`."""
    value_serde: AnySerde = None
    timestamp_extractor: TimestampExtractor | None = None
    """None stands for the application's `default.timestamp.extractor`."""
    offset_reset: str | None = None
    """`earliest`, `latest` or `none`; None stands for the consumer's `auto.offset.reset`."""
    parents: tuple[str, ...] = ()


class ProcessorNode(msgspec.Struct):
    """A node that processes records, and the state stores that it can use."""

    name: str
    supplier: ProcessorSupplier
    parents: tuple[str, ...]
    stores: list[str] = msgspec.field(default_factory=list)
    """In the order in which they were connected."""
    fixed_key: bool = False
    """Whether a forwarded record must have the key of the processed record."""


class SinkNode(msgspec.Struct):
    """A node that writes to a topic, or to the topic that its extractor chooses for each record."""

    name: str
    topic: str | TopicExtractor
    parents: tuple[str, ...]
    key_serde: AnySerde = None
    value_serde: AnySerde = None
    partitioner: Partitioner | None = None


Node = SourceNode | ProcessorNode | SinkNode


class ConnectedStore(msgspec.Struct):
    """A state store, and the nodes that use it, in the order in which they were connected."""

    builder: StoreBuilder
    users: list[str] = msgspec.field(default_factory=list)


class InternalTopic(msgspec.Struct, frozen=True):
    """A repartition topic. Its name in the cluster has the application id in front."""

    name: str
    partitions: int | None = None
    """None if the number follows from the topics that feed it."""


def node_serdes(node: SourceNode | SinkNode, defaults: DefaultSerdes) -> tuple[Serde[Any], Serde[Any]]:
    """Return the serdes of the keys and of the values of a node.

    Raises:
        StreamsError: the node has no serde, and the application has no default.
    """
    try:
        return defaults.resolve_key(node.key_serde), defaults.resolve_value(node.value_serde)
    except StreamsError as error:
        raise StreamsError(f"node {node.name} has {error}") from None
