"""TopologyTestDriver: runs a topology in a test, without a broker, record by record (KIP-247, KIP-470).

    with TopologyTestDriver(topology, {"default.key.serde": STRING, "default.value.serde": STRING}) as driver:
        lines = driver.create_input_topic("lines", STRING, STRING)
        counts = driver.create_output_topic("counts", STRING, INT64)
        lines.pipe_input(None, "hello world")
        assert counts.read_key_values() == [("hello", 1), ("world", 1)]

Each input is processed to its end, commit included, before the call returns. Time moves only if the test moves it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from pybroker.streams.config import parse_config
from pybroker.streams.errors import InvalidStateStoreError, StreamsError
from pybroker.streams.processor import PunctuationType
from pybroker.streams.records import Headers
from pybroker.streams.runtime.collector import ProducedRecord, RecordCollector
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.runtime.task import StreamTask, Task
from pybroker.streams.serdes import Serde
from pybroker.streams.state.directory import GLOBAL_TASK, StateDirectory
from pybroker.streams.testing.topics import TestInputTopic, TestOutputTopic
from pybroker.streams.topology.nodes import SourceNode
from pybroker.streams.topology.topology import Topology
from pybroker.streams.windows import Duration, milliseconds

APPLICATION_ID = "topology-test-driver"


class _Collected(RecordCollector):
    """The records that the topology has sent since the last call of `take`."""

    def __init__(self) -> None:
        self._sent: list[ProducedRecord] = []

    def send(self, record: ProducedRecord) -> None:
        self._sent.append(record)

    def partitions(self, topic: str) -> int:  # noqa: ARG002 - every topic has one partition
        return 1

    def take(self) -> list[ProducedRecord]:
        sent, self._sent = self._sent, []
        return sent


class TopologyTestDriver:
    """Runs all subtopologies of a topology as one task, with one partition of each topic.

    Output of the topology to its own source and repartition topics is processed too.
    """

    def __init__(
        self, topology: Topology, config: Mapping[str, Any] | None = None, initial_wall_clock_ms: int = 0
    ) -> None:
        """Start the topology.

        Args:
            topology: what `StreamsBuilder.build` returns, or a topology of the Processor API.
            config: settings of the application, with Kafka's keys. With `state.dir`, persistent stores are in RocksDB;
                without it all stores are in memory.
            initial_wall_clock_ms: the time of the driver at the start, in milliseconds since the epoch.

        Raises:
            StreamsError: a setting is unknown or invalid, or a node has no serde.
        """
        # No emission is delayed in a test: Kafka's driver sets both internal intervals to zero.
        settings = parse_config(config or {}, APPLICATION_ID, emit_interval_ms=0)
        self._now = initial_wall_clock_ms
        self._collected = _Collected()
        self._offsets: dict[str, int] = {}
        self._produced: dict[str, deque[ProducedRecord]] = {}
        groups = topology.subtopologies()
        of_tasks = {name for names in groups if not topology.is_global(names) for name in names}
        local = [name for name in topology.nodes if name in of_tasks]
        globals_ = [name for name in topology.nodes if name not in of_tasks]
        self._global = Task(topology, globals_, settings, self._collected, self.wall_clock_ms, "-1_-1")
        self._task = StreamTask(topology, local, settings, self._collected, self.wall_clock_ms)
        self._task.global_stores = self._global.global_stores = self._global.stores
        sources = {node.name: node for node in topology.nodes.values() if isinstance(node, SourceNode)}
        self._global_sources = {sources[name].topics[0]: sources[name] for name in self._global.sources}
        self._patterns = {
            f"{name} (pattern)": pattern for name, node in sources.items() if (pattern := node.pattern) is not None
        }
        self._directory = (
            None if settings.state_dir is None else StateDirectory(settings.state_dir, settings.application_id)
        )
        try:
            self._start()
        except BaseException:
            self._global.close_stores()
            self._remove_directory()
            raise

    def _start(self) -> None:
        if self._directory is not None:
            self._global.state_directory = self._directory.lock(GLOBAL_TASK)
            self._task.state_directory = self._directory.lock(self._task.task_id)
        self._global.start()
        self._task.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wall_clock_ms(self) -> int:
        """Return the time of the driver, in milliseconds since the epoch."""
        return self._now

    @property
    def dropped_records(self) -> int:
        """The number of records that operators have skipped, for example for a missing key."""
        return self._task.dropped_records + self._global.dropped_records

    def create_input_topic(
        self, topic: str, key_serde: Serde[Any], value_serde: Serde[Any], *, auto_advance_ms: int = 0
    ) -> TestInputTopic:
        """Return a topic to pipe records into. Records without a timestamp get its time, which starts at the driver's.

        Args:
            topic: the name of a source topic.
            key_serde: how keys are serialized.
            value_serde: how values are serialized.
            auto_advance_ms: by how much the time of the topic advances with each record, in milliseconds.
        """
        return TestInputTopic(self.pipe_record, topic, (key_serde, value_serde), self._now, auto_advance_ms)

    def create_output_topic(self, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> TestOutputTopic:
        """Return a topic to read the records from that the topology has written."""
        return TestOutputTopic(topic, self._produced.setdefault(topic, deque()), key_serde, value_serde)

    def pipe_record(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = ()
    ) -> None:
        """Process one record of a source topic, as bytes.

        Raises:
            StreamsError: no source reads the topic, or an operator fails.
        """
        queue = self._queue(topic)
        if queue is None and topic not in self._global_sources:
            known = ", ".join(sorted([*self._task.group.queues, *self._global_sources]))
            raise StreamsError(f"unknown topic {topic!r}: expected one of {known}")
        record = ProducedRecord(topic, key, value, timestamp, headers)
        if queue is not None:
            self._enqueue(queue, record)
            self._process_all()
        if topic in self._global_sources:
            self._process_global(record)

    def advance_wall_clock_time(self, advance: Duration) -> None:
        """Move the time of the driver, and run the punctuators whose time has come."""
        self._now += milliseconds("advance", advance)
        self._task.punctuate(PunctuationType.WALL_CLOCK_TIME)
        self._task.flush_caches()
        self._process_all()

    def produced(self, topic: str) -> list[ProducedRecord]:
        """Return and forget the records of a topic: a sink, a repartition topic or a changelog."""
        records = list(self._produced.get(topic, ()))
        self._produced.get(topic, deque()).clear()
        return records

    def produced_topics(self) -> set[str]:
        """Return the topics that the topology has written to."""
        return {topic for topic, records in self._produced.items() if records}

    def state_store(self, name: str) -> Any:
        """Return a state store, local or global.

        Raises:
            InvalidStateStoreError: the topology has no store of this name.
        """
        store = self._task.stores.get(name) or self._global.stores.get(name)
        if store is None:
            known = ", ".join(sorted([*self._task.stores, *self._global.stores])) or "none"
            raise InvalidStateStoreError(f"unknown state store {name!r}: expected one of {known}")
        return store

    def close(self) -> None:
        """Close processors and stores, and delete their directory. The driver cannot be used any more."""
        self._task.close()
        self._global.close()
        self._remove_directory()

    def _remove_directory(self) -> None:
        if self._directory is not None:
            self._directory.unlock(self._task.task_id)
            self._directory.unlock(GLOBAL_TASK)
            self._directory.clean()
            self._directory.close()
            self._directory = None

    def _queue(self, topic: str) -> str | None:
        """Return the name of the queue of a topic, if the task reads it."""
        if topic in self._task.group.queues:
            return topic
        return next((name for name, pattern in self._patterns.items() if pattern.fullmatch(topic)), None)

    def _enqueue(self, queue: str, record: ProducedRecord) -> None:
        offset = self._next_offset(queue)
        timestamp = self._now if record.timestamp is None else record.timestamp
        self._task.add_record(
            queue, RawRecord(record.topic, 0, offset, timestamp, record.key, record.value, record.headers)
        )

    def _next_offset(self, topic: str) -> int:
        offset = self._offsets.get(topic, 0)
        self._offsets[topic] = offset + 1
        return offset

    def _process_all(self) -> None:
        """Process what is queued, and what that sends to topics that the topology reads."""
        self._collect()
        while self._task.is_processable():
            self._task.process()
            self._task.punctuate(PunctuationType.STREAM_TIME)
            self._task.flush_caches()
            self._collect()
            self._task.commit_stores({})

    def _collect(self) -> None:
        """Keep the records that the topology has sent, and pass on those of topics that it reads."""
        for record in self._collected.take():
            self._produced.setdefault(record.topic, deque()).append(record)
            queue = self._queue(record.topic)
            if queue is not None:
                self._enqueue(queue, record)
            if record.topic in self._global_sources:
                self._process_global(record)

    def _process_global(self, record: ProducedRecord) -> None:
        node = self._global_sources[record.topic]
        timestamp = self._now if record.timestamp is None else record.timestamp
        raw = RawRecord(
            record.topic, 0, self._next_offset(record.topic), timestamp, record.key, record.value, record.headers
        )
        consumed = self._global.deserializer(node)(raw)
        if consumed is not None:
            self._global.process_source(node.name, consumed, timestamp)
        self._global.flush_caches()
        self._global.commit_stores({})
