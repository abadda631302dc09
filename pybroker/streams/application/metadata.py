"""Where the state of an application is: the instances of a group, their stores and partitions (`StreamsMetadataState`).

Computes from what the group coordinator reports about members with an `application.server`. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.java.murmur2 import partition_of
from pybroker.protocol.messages.streams_group_heartbeat import EndpointToPartitions
from pybroker.streams.errors import StreamsError
from pybroker.streams.serdes import Serde
from pybroker.streams.topology.nodes import Partitioner, SourceNode
from pybroker.streams.topology.topology import Topology

UNKNOWN_PARTITION = -1


class HostInfo(msgspec.Struct, frozen=True, order=True):
    """The `application.server` of an instance."""

    host: str
    port: int


UNAVAILABLE = HostInfo("unavailable", -1)
"""The host of a key whose task no instance with an `application.server` has (`HostInfo.unavailable`)."""


class StreamsMetadata(msgspec.Struct, frozen=True):
    """One instance of the application, with its stores and source partitions."""

    host_info: HostInfo
    state_store_names: frozenset[str] = frozenset()
    """The stores of its active tasks, and the global stores."""
    topic_partitions: frozenset[TopicPartition] = frozenset()
    """The source partitions of its active tasks."""
    standby_state_store_names: frozenset[str] = frozenset()
    standby_topic_partitions: frozenset[TopicPartition] = frozenset()

    @property
    def host(self) -> str:
        """The host of its `application.server`."""
        return self.host_info.host

    @property
    def port(self) -> int:
        """The port of its `application.server`."""
        return self.host_info.port


class KeyQueryMetadata(msgspec.Struct, frozen=True):
    """The instances that have the state of a key."""

    active_host: HostInfo
    standby_hosts: frozenset[HostInfo]
    partition: int
    """The partition of the key; -1 for a global store, and while nothing is known."""


NOT_AVAILABLE = KeyQueryMetadata(UNAVAILABLE, frozenset(), UNKNOWN_PARTITION)
"""The metadata of every key before the coordinator has reported an instance."""


class StateLocations:
    """Finds instances by store and key."""

    def __init__(self, topology: Topology, application_id: str, own: tuple[str, int] | None) -> None:
        """`own` is the `application.server` of this instance."""
        self._own = None if own is None else HostInfo(*own)
        self._global_stores = frozenset(topology.global_stores)
        self._sources = {store: _source_topics(topology, store, application_id) for store in topology.stores}

    def is_global(self, store: str) -> bool:
        """Return whether every instance has the whole store."""
        return store in self._global_stores

    def source_topics(self, store: str) -> frozenset[str]:
        """Return the topics whose partitions are those of a local store."""
        return self._sources[store]

    def clients(self, endpoints: Iterable[EndpointToPartitions]) -> list[StreamsMetadata]:
        """Return the instances in the order of their hosts. Members with the same endpoint are one instance."""
        active: dict[HostInfo, set[TopicPartition]] = {}
        standby: dict[HostInfo, set[TopicPartition]] = {}
        for entry in endpoints:
            host = HostInfo(entry.user_endpoint.host, entry.user_endpoint.port)
            for found, partitions in ((active, entry.active_partitions), (standby, entry.standby_partitions)):
                found.setdefault(host, set()).update(
                    TopicPartition(topic.topic, index) for topic in partitions for index in topic.partitions
                )
        return [
            StreamsMetadata(
                host,
                self._stores_of(active[host]) | self._global_stores,
                frozenset(active[host]),
                self._stores_of(standby[host]),
                frozenset(standby[host]),
            )
            for host in sorted(active)
        ]

    def clients_of(self, store: str, clients: Iterable[StreamsMetadata]) -> list[StreamsMetadata]:
        """Return the instances that have a part of a store."""
        return [
            client
            for client in clients
            if store in client.state_store_names or store in client.standby_state_store_names
        ]

    def of_global_store(self, clients: Sequence[StreamsMetadata]) -> KeyQueryMetadata:
        """Return where a global store is queried: at this instance, or at the first one if this one has no endpoint."""
        return KeyQueryMetadata(self._own or clients[0].host_info, frozenset(), UNKNOWN_PARTITION)

    def of_partition(self, store: str, partition: int, clients: Collection[StreamsMetadata]) -> KeyQueryMetadata:
        """Return where a partition of a store is queried."""
        wanted = {TopicPartition(topic, partition) for topic in self._sources[store]}
        active = [client.host_info for client in clients if not wanted.isdisjoint(client.topic_partitions)]
        standby = [client.host_info for client in clients if not wanted.isdisjoint(client.standby_topic_partitions)]
        return KeyQueryMetadata(active[-1] if active else UNAVAILABLE, frozenset(standby), partition)

    def _stores_of(self, partitions: Iterable[TopicPartition]) -> frozenset[str]:
        topics = {partition.topic for partition in partitions}
        return frozenset(store for store, sources in self._sources.items() if not sources.isdisjoint(topics))


def partition_of_key(
    key: Any, counts: Mapping[str, int], serde: Serde[Any] | None, partitioner: Partitioner | None
) -> int:
    """Return the partition of a key among topics with these numbers of partitions, as the sink of the topic does.

    Raises:
        StreamsError: the partitioner returns several partitions, or there is neither a serde nor a partitioner.
        SerializationError: the key is not of the type of the serde.
    """
    topic = max(counts, key=lambda name: counts[name])
    if partitioner is not None:
        chosen = partitioner(topic, key, None, counts[topic])
        if isinstance(chosen, int):
            return chosen
        if chosen is not None:
            if len(chosen) != 1:
                raise StreamsError(f"the partitioner returned {chosen!r} for key {key!r:.200}: expected one partition")
            return next(iter(chosen))
    if serde is None:
        raise StreamsError("no serde for the key: pass a serde or a partitioner, or set default.key.serde")
    data = serde.to_bytes(key) if serde.partition_key is None else serde.partition_key(key)
    if data is None:
        raise StreamsError("a key of None has no partition: expected a key of the store")
    return partition_of(data, counts[topic])


def _source_topics(topology: Topology, store: str, application_id: str) -> frozenset[str]:
    """Return the topics of the sources of the processor that was connected to a store first, by their full names."""
    topics: set[str] = set()
    waiting = list(topology.stores[store].users[:1])
    while waiting:
        node = topology.nodes[waiting.pop()]
        waiting.extend(node.parents)
        if isinstance(node, SourceNode):
            topics.update(node.topics)
    return frozenset(f"{application_id}-{it}" if it in topology.internal_topics else it for it in topics)
