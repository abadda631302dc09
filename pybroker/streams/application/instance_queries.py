"""The queries of one instance: local stores, the instances that have a key, and metrics (KIP-67).

Owns what `KafkaStreams` returns about its threads and the group. Starts and stops nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import LATEST, TopicPartition
from pybroker.streams.application.global_thread import GlobalThread
from pybroker.streams.application.metadata import (
    NOT_AVAILABLE,
    KeyQueryMetadata,
    StateLocations,
    StreamsMetadata,
    partition_of_key,
)
from pybroker.streams.application.queries import QueryableStore
from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.application.states import STARTED, State
from pybroker.streams.application.stream_threads import StreamThreads
from pybroker.streams.errors import InvalidStateStoreError, StreamsError
from pybroker.streams.serdes import Serde
from pybroker.streams.topology.nodes import Partitioner
from pybroker.streams.topology.topology import Topology


class InstanceQueries:
    """Reads the threads and the group of one instance."""

    def __init__(self, topology: Topology, settings: ApplicationSettings, threads: StreamThreads) -> None:
        self._topology = topology
        self._settings = settings
        self._threads = threads
        self._state = State.CREATED
        self._global_lock = threading.RLock()
        self._global: GlobalThread | None = None
        self._admin: Admin | None = None
        self._admin_lock = threading.Lock()
        self._locations = StateLocations(topology, settings.config.application_id, settings.endpoint)
        self._partitions: dict[str, int] = {}
        """The number of partitions of topics that a key was located in. Streams need these numbers to stay."""

    def store(self, name: str, *, timestamped: bool = False) -> QueryableStore:
        """Return a state store for queries: the local partitions of it, or a global store.

        Args:
            name: the store.
            timestamped: whether values of timestamped stores are returned as `ValueAndTimestamp`.

        Raises:
            InvalidStateStoreError: the topology has no store of this name, or the application does not run.
        """
        self._check_store(name)

        def located() -> list[tuple[threading.RLock, Any]]:
            if self._state not in STARTED:
                raise InvalidStateStoreError(f"store {name!r} cannot be read: the application is {self._state.name}")
            if self._global is not None and name in self._global.stores:
                return [(self._global_lock, self._global.stores[name])]
            return [
                (thread.lock, task.task.stores[name])
                for thread in self._threads.all()
                for task in list(thread.tasks.tasks.values())
                if name in task.task.stores
            ]

        return QueryableStore(name, located, timestamped=timestamped)

    def _check_store(self, name: str) -> None:
        known = sorted([*self._topology.stores, *self._topology.global_stores])
        if name not in known:
            raise InvalidStateStoreError(f"unknown state store {name!r}: expected one of {', '.join(known) or 'none'}")

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """Return all instances of the application that have an `application.server`, in the order of their hosts.

        The result is a view of one moment: tasks move when instances start and stop.

        Raises:
            StreamsError: the application does not run.
        """
        if self._state not in STARTED:
            raise StreamsError(f"instances cannot be listed in state {self._state.name}: expected RUNNING, REBALANCING")
        newest = max(self._threads.all(), key=lambda thread: thread.endpoints_changed_at, default=None)
        return self._locations.clients(() if newest is None else newest.endpoints)

    def streams_metadata_for_store(self, store: str) -> list[StreamsMetadata]:
        """Return the instances that have a part of a store, in active or standby tasks. A global store is at all.

        Raises:
            InvalidStateStoreError: the topology has no store of this name.
            StreamsError: the application does not run.
        """
        self._check_store(store)
        return self._locations.clients_of(store, self.metadata_for_all_streams_clients())

    def query_metadata_for_key(
        self, store: str, key: Any, serde: Serde[Any] | None = None, *, partitioner: Partitioner | None = None
    ) -> KeyQueryMetadata:
        """Return the instances that have the state of a key, whether the key exists or not.

        Args:
            store: the store.
            key: the key. Of a window store, the key without its window.
            serde: the serde of keys of the source topic; `default.key.serde` if it is None.
            partitioner: the partitioner of the source topic, if it is not that of Kafka.

        Returns:
            The instances, or `NOT_AVAILABLE` before the group coordinator has reported one. A global store has the
            partition -1. The active host is `UNAVAILABLE` while no instance with an `application.server` has the task.

        Raises:
            InvalidStateStoreError: the topology has no store of this name.
            StreamsError: the application does not run, or the partition of the key cannot be computed.
            ClientError: the number of partitions cannot be fetched.
        """
        clients = self.streams_metadata_for_store(store)
        if not clients:
            return NOT_AVAILABLE
        if self._locations.is_global(store):
            return self._locations.of_global_store(clients)
        topics = sorted(self._locations.source_topics(store))
        counts = {topic: self._cached_partitions(topic) for topic in topics}
        partition = partition_of_key(key, counts, serde or self._settings.config.default_serdes.key, partitioner)
        return self._locations.of_partition(store, partition, clients)

    def _cached_partitions(self, topic: str) -> int:
        found = self._partitions.get(topic)
        if found is None:
            found = self._partitions[topic] = self._count_partitions(topic)
        return found

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return the metrics of each thread, by the name of the thread."""
        return {thread.name: thread.metrics() for thread in self._threads.all()}

    def task_metrics(self) -> dict[str, dict[str, float]]:
        """Return the metrics of each task of this instance, by the id of the task."""
        return {task: found for thread in self._threads.all() for task, found in thread.task_metrics().items()}

    def store_metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the properties of RocksDB of each persistent store, by the id of the task and the name of the store.

        Raises:
            ProcessorStateError: a database cannot be read.
        """
        return {task: found for thread in self._threads.all() for task, found in thread.store_metrics().items()}

    def _count_partitions(self, topic: str) -> int:
        assert self._admin is not None, "the admin is open before the threads"
        with self._admin_lock:
            return len(self._admin.describe_topics([topic])[0].partitions)

    def _end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        assert self._admin is not None, "the admin is open before the threads"
        with self._admin_lock:
            found = self._admin.list_offsets(dict.fromkeys(partitions, LATEST), confirmed=True)
        return {partition: listed.offset for partition, listed in found.items()}
