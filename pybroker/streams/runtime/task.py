"""A task: the running nodes and stores of a topology over one partition of each source topic (`StreamTask`).

A task does no I/O and reads no clock. Its runner passes records and the time, and takes records through the collector.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pybroker.client.java.hash_order import in_hash_order
from pybroker.streams.config import StreamsConfig
from pybroker.streams.errors import RECOVERED, SerializationError, StreamsError
from pybroker.streams.exception_handlers import ErrorContext, ExceptionHandler, Handlers
from pybroker.streams.processor import PunctuationType
from pybroker.streams.records import Headers, Record, RecordContext
from pybroker.streams.runtime.collector import ProducedRecord, RecordCollector
from pybroker.streams.runtime.commit_metadata import CommitMetadata
from pybroker.streams.runtime.node import NodeContext, Process, RunningProcessor, RunningSink
from pybroker.streams.runtime.punctuation import PunctuationQueue, Schedule
from pybroker.streams.runtime.record_queue import PartitionGroup, RawRecord, RecordQueue
from pybroker.streams.state.cache import Cache
from pybroker.streams.state.rocks import check_installed
from pybroker.streams.state.store import StateStore, StoreContext
from pybroker.streams.timestamps import ConsumedRecord
from pybroker.streams.topology.nodes import ProcessorNode, SinkNode, SourceNode, node_serdes
from pybroker.streams.topology.topology import Topology

log = logging.getLogger("pybroker.streams")


class Task(StoreContext):
    """The nodes of one task, connected, with their stores."""

    record_context: RecordContext | None = None
    """The context of the record that the task is processing; None outside of processing."""

    def __init__(
        self,
        topology: Topology,
        nodes: Sequence[str],
        config: StreamsConfig,
        collector: RecordCollector,
        now: Callable[[], int],
        task_id: str = "0_0",
    ) -> None:
        self.topology = topology
        self.task_id = task_id
        self.application_id = config.application_id
        self.emit_interval_ms = config.emit_interval_ms
        self.default_key_serde = config.default_serdes.key
        self.default_value_serde = config.default_serdes.value
        self._config = config
        self._collector = collector
        self._now = now
        # Without caching there is no layer of caches at all, so every update is forwarded at once.
        self._cache = Cache(config.cache_max_bytes) if config.cache_max_bytes > 0 else None
        self.stores: dict[str, StateStore] = {}
        self.global_stores: Mapping[str, StateStore] = {}
        self.sources: dict[str, NodeContext] = {}
        self._processors: list[RunningProcessor] = []
        self._metadata: dict[str, int] = {}
        self.dropped_records = 0
        self.handlers = Handlers()
        """The handlers of records that cause errors. A runner replaces the default, which is to fail."""
        self._decided: Exception | None = None
        self._raw: RawRecord | None = None
        self._build(nodes)

    # Building.

    def _build(self, nodes: Sequence[str]) -> None:
        contexts: dict[str, NodeContext] = {}
        for name in nodes:
            node = self.topology.nodes[name]
            if isinstance(node, SourceNode):
                contexts[name] = self.sources[name] = NodeContext(self, name, [])
                continue
            if isinstance(node, SinkNode):
                process: Process = self._sink(node).process
            else:
                running = RunningProcessor(self, node)
                self._processors.append(running)
                contexts[name] = running.context
                process = running.process
                self._add_stores(node)
            for parent in node.parents:
                contexts[parent].connect(name, process)

    def _sink(self, node: SinkNode) -> RunningSink:
        topic = self.decorated(node.topic) if isinstance(node.topic, str) else None
        return RunningSink(self, node, topic, node_serdes(node, self._config.default_serdes), self._collector)

    def _add_stores(self, node: ProcessorNode) -> None:
        # Stores are flushed in this order, which Kafka takes from a HashSet.
        for name in in_hash_order(node.stores):
            if name in self.stores:
                continue
            connected = self.topology.stores.get(name) or self.topology.global_stores.get(name)
            if connected is not None:
                builder = connected.builder
                builder = builder.with_default_persistence(self._config.persistent_stores)
                self.stores[name] = (builder if self._cache is not None else builder.with_caching(False)).build()

    def decorated(self, topic: str) -> str:
        """Return the name of a topic in the cluster: repartition topics have the application id in front."""
        return f"{self.application_id}-{topic}" if topic in self.topology.internal_topics else topic

    def start(self) -> None:
        """Open the stores and initialise the processors. A failure closes the stores."""
        self.open_stores()
        try:
            self.init_processors()
        except BaseException:
            self.close_stores()
            raise

    def open_stores(self) -> None:
        """Open the stores. A runner restores them before it initialises the processors. A failure closes all of them.

        Raises:
            StreamsError: a store is persistent, and RocksDB is not installed.
            TaskCorruptedError: the database of a store is damaged.
            ProcessorStateError: a store cannot be opened.
        """
        if self.state_directory is not None:
            stores = self.stores.values()
            check_installed(store.name for store in stores if store.maps is not None and store.maps.wants_persistence)
        try:
            for store in self.stores.values():
                store.init(self)
        except BaseException:
            # An open database would stay locked for the next try.
            self.close_stores()
            raise

    def init_processors(self) -> None:
        """Initialise the processors, in the order of the topology."""
        for running in self._processors:
            running.processor.init(running.context)

    def flush_caches(self) -> None:
        """Write the caches of all stores, which forwards what they have combined."""
        for store in self.stores.values():
            store.flush()

    def commit_stores(self, changelog_offsets: Mapping[str, int]) -> None:
        """Commit each store with the first offset of its changelog that it does not contain.

        Caches must be flushed, and the changelog records be acknowledged. A store without an offset keeps its last one.
        """
        for name, store in self.stores.items():
            store.commit(changelog_offsets.get(name))

    @property
    def uncommitted_bytes(self) -> int:
        """The approximate memory of uncommitted changes of all stores, in bytes."""
        return sum(store.uncommitted_bytes for store in self.stores.values())

    def close(self) -> None:
        """Close processors and stores. Nothing is committed."""
        self.close_processors()
        self.close_stores()

    def close_processors(self) -> None:
        """Close the processors, in the order of the topology."""
        for running in self._processors:
            running.processor.close()

    def close_stores(self) -> None:
        """Close all stores, also one that is open in part because its start failed. Nothing is committed."""
        for store in self.stores.values():
            store.close()
            if store.maps is not None:
                store.maps.close()

    def deserializer(self, node: SourceNode) -> Callable[[RawRecord], ConsumedRecord | None]:
        """Return the function that deserializes the records of a source."""
        key_serde, value_serde = node_serdes(node, self._config.default_serdes)

        def deserialize(raw: RawRecord) -> ConsumedRecord | None:
            try:
                key, value = key_serde.from_bytes(raw.key), value_serde.from_bytes(raw.value)
            except StreamsError as error:
                if self._decide(self.handlers.deserialization, self._raw_context(node.name, raw), error):
                    return None
                raise StreamsError(
                    f"task {self.task_id} cannot deserialize record {raw.topic}-{raw.partition} offset {raw.offset} of "
                    f"source {node.name}: {error}"
                ) from error
            return ConsumedRecord(raw.topic, raw.partition, raw.offset, raw.timestamp, key, value, raw.headers)

        return deserialize

    # The methods that nodes and stores use.

    def set_record_context(self, context: RecordContext | None) -> None:
        """Replace the context of the current record."""
        self.record_context = context

    @property
    def stream_time(self) -> int:
        """The largest timestamp that the task has processed, in milliseconds."""
        return -1

    @property
    def wall_clock_time(self) -> int:
        """The current time, in milliseconds."""
        return self._now()

    @property
    def cache(self) -> Cache | None:
        """The cache of the task; None if caching is disabled."""
        return self._cache

    def changelog_topic(self, store_name: str) -> str:
        """Return the changelog topic of a store."""
        return f"{self.application_id}-{store_name}-changelog"

    def log_change(
        self, store_name: str, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers
    ) -> None:
        """Send a record to the changelog of a store."""
        self._collector.send(ProducedRecord(self.changelog_topic(store_name), key, value, timestamp, headers))

    def store_of(self, node: str, stores: list[str], name: str) -> Any:
        """Return a store that a node is connected to, or a global store.

        Raises:
            StreamsError: the store is unknown, or not connected to the node.
        """
        if name in self.global_stores:
            return self.global_stores[name]
        if name not in stores:
            known = ", ".join(stores) or "none"
            raise StreamsError(
                f"node {node} has no access to store {name!r}: connect the store to the node. Connected stores: {known}"
            )
        return self.stores[name]

    def schedule(self, kind: PunctuationType, schedule: Schedule) -> None:
        """Add a punctuator. The global task has none.

        Raises:
            StreamsError: always.
        """
        raise StreamsError(
            f"node {schedule.node} fills a global store: it cannot schedule a punctuator of {kind.value}"
        )

    def request_commit(self) -> None:
        """Do nothing: a global store is never committed."""

    def dropped(self, node: str, reason: str) -> None:
        """Count and log a skipped record."""
        self.dropped_records += 1
        context = self.record_context
        where = (
            "unknown position" if context is None else f"{context.topic}-{context.partition} offset {context.offset}"
        )
        log.warning("Skipping record %s at node %s of task %s: %s", where, node, self.task_id, reason)

    def skips(self, node: str, record: Record[Any, Any], error: Exception) -> bool:
        """Return whether the processing or production handler decides to continue after an error of a node."""
        if error is self._decided or isinstance(error, RECOVERED):
            return False  # The handler has decided at the node that failed: the error is on its way up.
        handlers, at = self.handlers, self.record_context
        handler = handlers.production if isinstance(error, SerializationError) else handlers.processing
        raw = self._raw
        context = ErrorContext(
            self.task_id,
            node,
            *((None, -1, -1) if at is None else (at.topic, at.partition, at.offset)),
            record.timestamp,
            *((None, None) if raw is None else (raw.key, raw.value)),
            record.headers,
            record,
        )
        return self._decide(handler, context, error)

    def _raw_context(self, node: str, raw: RawRecord) -> ErrorContext:
        return ErrorContext(
            self.task_id, node, raw.topic, raw.partition, raw.offset, raw.timestamp, raw.key, raw.value, raw.headers
        )

    def _decide(self, handler: ExceptionHandler, context: ErrorContext, error: Exception) -> bool:
        response = self.handlers.decide(handler, context, error)
        for letter in response.dead_letters:
            self._collector.send(letter)
        if not response.continues:
            self._decided = error
            return False
        self.dropped_records += 1
        log.warning(
            "Skipping record %s-%d offset %d at node %s of task %s: %s: %s",
            *(context.topic, context.partition, context.offset, context.node, self.task_id),
            *(type(error).__name__, error),
        )
        return True

    def metadata(self, key: str) -> int | None:
        """Return a number that was stored with a commit."""
        return self._metadata.get(key)

    def set_metadata(self, key: str, value: int) -> None:
        """Store a number with the next commit."""
        self._metadata[key] = value

    def stored_numbers(self) -> Mapping[str, int]:
        """Return the numbers that processors have stored, for the metadata of committed offsets."""
        return dict(self._metadata)

    def process_source(self, source: str, record: ConsumedRecord, timestamp: int) -> None:
        """Pass a record to the children of a source.

        Raises:
            StreamsError: an operator fails. The message has the position of the record.
            TaskCorruptedError: the database of a store is damaged.
            TaskMigratedError: the transaction has ended.
        """
        self.record_context = RecordContext(timestamp, record.offset, record.partition, record.topic, record.headers)
        try:
            self.sources[source].forward(Record(record.key, record.value, timestamp, record.headers))
        except RECOVERED:
            raise
        except Exception as error:
            raise StreamsError(
                f"task {self.task_id} failed at record {record.topic}-{record.partition} offset {record.offset} of "
                f"source {source}: {error}"
            ) from error


class StreamTask(Task):
    """A task that reads partitions of source topics in the order of their timestamps."""

    def __init__(
        self,
        topology: Topology,
        nodes: Sequence[str],
        config: StreamsConfig,
        collector: RecordCollector,
        now: Callable[[], int],
        task_id: str = "0_0",
    ) -> None:
        super().__init__(topology, nodes, config, collector, now, task_id)
        self._max_idle_ms = config.max_task_idle_ms
        self._idle_since: int | None = None
        self._punctuators = {kind: PunctuationQueue() for kind in PunctuationType}
        queues: dict[str, RecordQueue] = {}
        self._source_of: dict[int, str] = {}
        for name in self.sources:
            node = topology.nodes[name]
            assert isinstance(node, SourceNode), "the sources are source nodes"
            for topic in node.topics or (f"{name} (pattern)",):
                queue = RecordQueue(
                    self.deserializer(node),
                    node.timestamp_extractor or config.default_timestamp_extractor,
                    self._skip,
                )
                queues[self.decorated(topic)] = queue
                self._source_of[id(queue)] = name
        self.group = PartitionGroup(queues)
        self.commit_requested = False

    def _skip(self, raw: RawRecord, reason: str) -> None:
        self.dropped_records += 1
        log.warning(
            "Skipping record %s-%d offset %d of task %s: %s", raw.topic, raw.partition, raw.offset, self.task_id, reason
        )

    @property
    def stream_time(self) -> int:
        """The largest timestamp that the task has processed, in milliseconds."""
        return self.group.stream_time

    def changelog_topic(self, store_name: str) -> str:
        """Return the changelog topic of a store: a topic of its own, or the source topic that replaces it."""
        source = self.topology.store_source_topics.get(store_name)
        return super().changelog_topic(store_name) if source is None else self.decorated(source)

    def continue_from(self, queue: str, committed: CommitMetadata) -> None:
        """Take over the partition time and the numbers of processors that an earlier run has committed."""
        self.group.set_partition_time(queue, committed.partition_time)
        for key, number in committed.numbers.items():
            self._metadata[key] = max(number, self._metadata.get(key, number))

    def schedule(self, kind: PunctuationType, schedule: Schedule) -> None:
        """Add a punctuator."""
        self._punctuators[kind].add(schedule)

    def request_commit(self) -> None:
        """Commit after the current record."""
        self.commit_requested = True

    def add_record(self, queue: str, record: RawRecord) -> None:
        """Append a fetched record to the queue of its topic, or of the pattern that matches its topic."""
        self.group.add(queue, record)

    def is_processable(self) -> bool:
        """Return whether a record can be processed now, and not only after waiting for the other partitions."""
        if self.group.is_empty:
            return False
        if self._max_idle_ms <= 0 or not self.group.has_empty_queue:
            self._idle_since = None
            return True
        if self._idle_since is None:
            self._idle_since = self._now()
        return self._now() - self._idle_since >= self._max_idle_ms

    def process(self) -> None:
        """Process the record with the smallest timestamp."""
        queue, record, timestamp = self.group.poll()
        self._raw = queue.taken_raw
        self.process_source(self._source_of[id(queue)], record, timestamp)

    def punctuate(self, kind: PunctuationType) -> bool:
        """Run the due punctuators of a clock, and return whether one was due."""
        now = self.stream_time if kind is PunctuationType.STREAM_TIME else self._now()
        if kind is PunctuationType.STREAM_TIME and now < 0:
            return False

        def run(schedule: Schedule) -> None:
            self.record_context, self._raw = RecordContext(now, -1, -1, None), None
            try:
                schedule.callback(now)
            except RECOVERED:
                raise
            except Exception as error:
                if self.skips(schedule.node, Record(None, None, now), error):
                    return
                raise StreamsError(
                    f"task {self.task_id} failed in a punctuator of node {schedule.node}: {error}"
                ) from error
            finally:
                self.record_context = None

        return self._punctuators[kind].run_due(now, run)
