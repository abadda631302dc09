"""The thread that fills the global stores of an application from all partitions of their topics."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.consumer import Consumer
from pybroker.client.errors import ClientError
from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.application.thread_tasks import wall_clock_ms
from pybroker.streams.errors import StreamsError
from pybroker.streams.runtime.collector import ProducedRecord, RecordCollector
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.runtime.task import Task
from pybroker.streams.state.store import StateStore
from pybroker.streams.topology.nodes import SourceNode
from pybroker.streams.topology.topology import Topology

log = logging.getLogger("pybroker.streams")


class _NoRecords(RecordCollector):
    """The collector of nodes that send nothing."""

    def send(self, record: ProducedRecord) -> None:
        raise StreamsError(f"the processor of a global store sends a record to topic {record.topic}: it cannot")

    def partitions(self, topic: str) -> int:
        raise StreamsError(f"the processor of a global store partitions records of topic {topic}: it cannot")


class GlobalThread:
    """Reads the topics of all global stores, first to their ends, then for ever."""

    def __init__(self, topology: Topology, settings: ApplicationSettings, name: str, lock: threading.RLock) -> None:
        """`lock` is held while the stores change."""
        nodes = [name for names in topology.subtopologies() if topology.is_global(names) for name in names]
        self._task = Task(topology, nodes, settings.config, _NoRecords(), wall_clock_ms, "-1_-1")
        self._task.handlers = settings.handlers
        self._task.global_stores = self._task.stores
        self._sources = {
            node.topics[0]: node
            for source in self._task.sources
            if isinstance(node := topology.nodes[source], SourceNode)
        }
        self._settings = settings
        self._name = name
        self.lock = lock
        self.on_failure: Callable[[BaseException], object] = lambda _error: None
        """Called in the thread if it fails."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._consumer: Consumer[bytes, bytes] | None = None

    @property
    def stores(self) -> Mapping[str, StateStore]:
        """The global stores by name."""
        return self._task.stores

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread, for example in a serde."""
        return self._thread is threading.current_thread()

    def start(self) -> None:
        """Read the topics to their ends, then start the thread.

        Raises:
            StreamsError: a record cannot be processed.
            ClientError: a topic does not exist, or the brokers cannot be reached.
        """
        properties = {**self._settings.clients.globals, "client.id": f"{self._name}-consumer"}
        consumer = self._consumer = Consumer(self._settings.bootstrap_servers, properties)
        try:
            partitions = [
                TopicPartition(topic, partition.index)
                for topic in self._sources
                for partition in consumer.partitions_for(topic).partitions
            ]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            self._task.start()
            for partition, end in consumer.end_offsets(*partitions).items():
                while consumer.position(partition) < end and not self._stop.is_set():
                    self._read(consumer)
        except BaseException:
            consumer.close()
            raise
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, or a `start` that reads the topics."""
        self._stop.set()

    def join(self, timeout_s: float | None) -> bool:
        """Wait for the end of the thread, and return whether it has ended."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        assert self._consumer is not None, "the thread starts after its consumer"
        try:
            while not self._stop.is_set():
                self._read(self._consumer)
        except BaseException as error:
            log.exception("Thread %s failed", self._name)
            self.on_failure(error)
        finally:
            with self.lock:
                self._task.close()
            try:
                self._consumer.close()
            except ClientError as error:
                log.warning("Thread %s could not close its consumer: %s", self._name, error)

    def _read(self, consumer: Consumer[bytes, bytes]) -> None:
        records = consumer.poll(self._settings.poll_ms / 1000)
        with self.lock:
            for record in records:
                node = self._sources[record.topic]
                raw = RawRecord(
                    record.topic,
                    record.partition,
                    record.offset,
                    record.timestamp_ms,
                    record.key,
                    record.value,
                    tuple(record.headers),
                )
                consumed = self._task.deserializer(node)(raw)
                if consumed is not None:
                    self._task.process_source(node.name, consumed, max(raw.timestamp, 0))
            self._task.flush_caches()
