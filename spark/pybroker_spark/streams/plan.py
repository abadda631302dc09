"""What the workers need to run a topology, and the checks that refuse a topology before a query starts.

Must not know Spark or a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pybroker.streams.config import StreamsConfig
from pybroker.streams.errors import TopologyError
from pybroker.streams.exception_handlers import Handlers
from pybroker.streams.state.spec import BUFFER_KINDS
from pybroker.streams.topology.nodes import ProcessorNode, SinkNode, SourceNode
from pybroker.streams.topology.topology import Topology


class Plan(msgspec.Struct, frozen=True):
    """A topology with the numbers of partitions of its topics. It is pickled to the workers."""

    topology: Topology
    config: StreamsConfig
    handlers: Handlers
    partitions: Mapping[str, int]
    """The number of partitions of each topic that the topology reads or writes, by its name in the cluster."""
    subtopologies: Sequence[Sequence[str]]
    """The nodes of each subtopology. The index is its id."""

    def stores(self, subtopology: int) -> list[str]:
        """Return the names of the stores of a subtopology."""
        nodes = (self.topology.nodes[name] for name in self.subtopologies[subtopology])
        return sorted({store for node in nodes if isinstance(node, ProcessorNode) for store in node.stores})

    def is_stateless(self, subtopology: int) -> bool:
        """Return whether no task of a subtopology keeps anything between two batches.

        A timestamp extractor gets the partition time, and a processor of a program can schedule punctuators. Both are
        kept, so only nodes of the DSL without these make a subtopology stateless. It has one topic, because Spark reads
        each partition by a task of its own, and a task of Kafka takes the records of all its topics by timestamp.
        """
        nodes = [self.topology.nodes[name] for name in self.subtopologies[subtopology]]
        if self.stores(subtopology) or len(self.sources(subtopology)) > 1:
            return False
        return not any(
            (isinstance(node, SourceNode) and node.timestamp_extractor is not None)
            or (isinstance(node, ProcessorNode) and not node.supplier.__module__.startswith(_OPERATORS))
            for node in nodes
        )

    def sources(self, subtopology: int) -> dict[str, SourceNode]:
        """Return the source node of each topic of a subtopology, by the name of the topic in the cluster."""
        return {
            self.name_of(topic): node
            for name in self.subtopologies[subtopology]
            if isinstance(node := self.topology.nodes[name], SourceNode)
            for topic in node.topics
        }

    def name_of(self, topic: str) -> str:
        """Return the name of a topic in the cluster."""
        internal = topic in self.topology.internal_topics
        return f"{self.config.application_id}-{topic}" if internal else topic


_OPERATORS = "pybroker.streams.operators."


def check(topology: Topology) -> None:
    """Check that a topology can run on Spark.

    Raises:
        TopologyError: a node cannot run. The message has its name and the reason.
    """
    for name, store in topology.global_stores.items():
        raise TopologyError(
            f"node {store.users[0]} fills the global store {name}: on Spark no task reads all partitions of a topic. "
            "Join with a table, or run the topology with KafkaStreams"
        )
    for node in topology.nodes.values():
        if isinstance(node, SourceNode):
            _check_source(node)
        elif isinstance(node, SinkNode) and not isinstance(node.topic, str) and node.partitioner is not None:
            raise TopologyError(
                f"sink {node.name} has a topic extractor and a partitioner: on Spark a partitioner gets the numbers of "
                "partitions at the start, so its topic must be known. Give the name of the topic, or no partitioner"
            )
    for name, store in topology.stores.items():
        if store.builder.kind in BUFFER_KINDS and not store.builder.logging:
            raise TopologyError(
                f"node {store.users[0]} has the buffer {name} with logging disabled: on Spark the logged changes of a "
                "buffer are its state. Enable logging"
            )


def _check_source(node: SourceNode) -> None:
    if node.pattern is not None:
        raise TopologyError(
            f"source {node.name} subscribes to the pattern {node.pattern.pattern!r}: on Spark the topics of a task are "
            "fixed at the start. Name the topics"
        )
    if node.offset_reset == "none":
        raise TopologyError(
            f"invalid offset_reset 'none' of source {node.name}: a query begins without offsets. Expected earliest or "
            "latest"
        )
