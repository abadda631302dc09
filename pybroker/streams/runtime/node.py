"""The running nodes of a task: the contexts of processors, and the sinks that send records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pybroker.streams.errors import SerializationError, StreamsError
from pybroker.streams.operators.context import OperatorContext
from pybroker.streams.processor import Cancellable, Processor, PunctuationType
from pybroker.streams.records import Record, RecordContext
from pybroker.streams.runtime.collector import ProducedRecord, RecordCollector
from pybroker.streams.runtime.punctuation import Schedule
from pybroker.streams.serdes import Serde
from pybroker.streams.topology.nodes import ProcessorNode, SinkNode

Process = Callable[[Record[Any, Any]], None]


class RunningTask(Protocol):
    """The part of a task that its nodes use."""

    application_id: str
    task_id: str
    emit_interval_ms: int
    record_context: RecordContext | None
    default_key_serde: Serde[Any] | None
    default_value_serde: Serde[Any] | None

    @property
    def stream_time(self) -> int:
        """The largest timestamp of the task, in milliseconds."""

    @property
    def wall_clock_time(self) -> int:
        """The current time, in milliseconds."""

    def store_of(self, node: str, stores: list[str], name: str) -> Any:
        """Return a store that a node is connected to, or a global store."""

    def schedule(self, kind: PunctuationType, schedule: Schedule) -> None:
        """Add a punctuator."""

    def request_commit(self) -> None:
        """Commit after the current record."""

    def dropped(self, node: str, reason: str) -> None:
        """Count and log a skipped record."""

    def skips(self, node: str, record: Record[Any, Any], error: Exception) -> bool:
        """Return whether the task continues after an error of a node."""

    def metadata(self, key: str) -> int | None:
        """Return a number that was stored with a commit."""

    def set_metadata(self, key: str, value: int) -> None:
        """Store a number with the next commit."""


class NodeContext(OperatorContext):
    """The context of one node of one task (`ProcessorContextImpl`)."""

    def __init__(self, task: RunningTask, name: str, stores: list[str]) -> None:
        self._task = task
        self.node_name = name
        self._stores = stores
        self.application_id = task.application_id
        self.task_id = task.task_id
        self.emit_interval_ms = task.emit_interval_ms
        self.default_key_serde = task.default_key_serde
        self.default_value_serde = task.default_value_serde
        self._children: list[tuple[str, Process]] = []
        self._by_name: dict[str, Process] = {}

    def connect(self, name: str, process: Process) -> None:
        """Add a child."""
        self._children.append((name, process))
        self._by_name[name] = process

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Send a record to all children of this node, or to the named child."""
        task = self._task
        before = task.record_context
        if before is not None and (record.timestamp != before.timestamp or record.headers is not before.headers):
            # Stores and sinks below use the timestamp and the headers of the record that they receive.
            task.record_context = RecordContext(
                record.timestamp, before.offset, before.partition, before.topic, record.headers
            )
        try:
            for name, process in self._children if child is None else ((child, self._child(child)),):
                try:
                    process(record)
                except Exception as error:
                    if not task.skips(name, record, error):
                        raise
        finally:
            task.record_context = before

    def _child(self, name: str) -> Process:
        if name not in self._by_name:
            raise StreamsError(
                f"node {self.node_name} has no child {name!r}: expected one of {', '.join(self._by_name) or 'none'}"
            )
        return self._by_name[name]

    def state_store(self, name: str) -> Any:
        """Return a state store that is connected to this node, or a global store."""
        return self._task.store_of(self.node_name, self._stores, name)

    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback` every `interval_ms`. The first time of stream time is its first record."""
        if interval_ms < 1:
            raise ValueError(f"invalid interval {interval_ms} ms of a punctuator: expected at least 1")
        first = 0 if kind is PunctuationType.STREAM_TIME else self._task.wall_clock_time + interval_ms
        schedule = Schedule(self.node_name, first, interval_ms, callback)
        self._task.schedule(kind, schedule)
        return schedule

    @property
    def record_context(self) -> RecordContext | None:
        """The context of the record that the task is processing."""
        return self._task.record_context

    def set_record_context(self, context: RecordContext | None) -> None:
        """Replace the context of the record that the task is processing."""
        self._task.record_context = context

    @property
    def stream_time(self) -> int:
        """The largest timestamp that this task has processed, in milliseconds."""
        return self._task.stream_time

    @property
    def wall_clock_time(self) -> int:
        """The time of the machine or of the test driver, in milliseconds."""
        return self._task.wall_clock_time

    def commit(self) -> None:
        """Request a commit after the current record."""
        self._task.request_commit()

    def drop(self, reason: str) -> None:
        """Count and log a record that is skipped."""
        self._task.dropped(self.node_name, reason)

    def processor_metadata(self, key: str) -> int | None:
        """Return a number that a processor of this task has stored with a commit."""
        return self._task.metadata(key)

    def set_processor_metadata(self, key: str, value: int) -> None:
        """Store a number that the next commit writes with the offsets of the task."""
        self._task.set_metadata(key, value)


class FixedKeyContext(NodeContext):
    """The context of a processor that must keep the keys of its records."""

    def __init__(self, task: RunningTask, name: str, stores: list[str]) -> None:
        super().__init__(task, name, stores)
        self.key: Any = None
        """The key of the record that is processed."""

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Send a record to the children.

        Raises:
            StreamsError: the key of the record is not that of the processed record.
        """
        if record.key is not self.key and record.key != self.key:
            raise StreamsError(
                f"node {self.node_name} forwards key {record.key!r:.200} of a record with key {self.key!r:.200}: "
                "expected the same key. process() can change keys"
            )
        super().forward(record, child)


class RunningProcessor:
    """A processor and its context."""

    def __init__(self, task: RunningTask, node: ProcessorNode) -> None:
        self.name = node.name
        self.processor: Processor[Any, Any] = node.supplier()
        self.context = (FixedKeyContext if node.fixed_key else NodeContext)(task, node.name, node.stores)
        if not callable(getattr(self.processor, "process", None)):
            raise StreamsError(
                f"the supplier of node {node.name} returned {type(self.processor).__name__}: expected a Processor"
            )

    @property
    def process(self) -> Process:
        """The function that processes a record."""
        if isinstance(self.context, FixedKeyContext):
            return self._process_fixed
        return self.processor.process

    def _process_fixed(self, record: Record[Any, Any]) -> None:
        assert isinstance(self.context, FixedKeyContext), "only such a context has a key"
        self.context.key = record.key
        self.processor.process(record)


class RunningSink:
    """Sends records to a topic (`SinkNode`)."""

    def __init__(
        self,
        task: RunningTask,
        node: SinkNode,
        topic: str | None,
        serdes: tuple[Serde[Any], Serde[Any]],
        collector: RecordCollector,
    ) -> None:
        self.name = node.name
        self._task = task
        self._node = node
        self._topic = topic
        self._key_serde, self._value_serde = serdes
        self._collector = collector

    def process(self, record: Record[Any, Any]) -> None:
        """Serialize and send a record.

        Raises:
            StreamsError: a serde fails, the timestamp is negative, or the extractor returns no topic.
        """
        if record.timestamp < 0:
            raise StreamsError(f"sink {self.name} got the invalid timestamp {record.timestamp}: expected >= 0")
        topic = self._topic if self._topic is not None else self._extracted(record)
        try:
            key = self._key_serde.to_bytes(record.key)
            value = self._value_serde.to_bytes(record.value)
        except SerializationError as error:
            raise SerializationError(
                f"sink {self.name} cannot write to topic {topic}: {error}. Set key_serde and value_serde of the "
                "operation, or default.key.serde and default.value.serde"
            ) from error
        for partition in self._partitions(topic, record):
            self._collector.send(ProducedRecord(topic, key, value, record.timestamp, record.headers, partition))

    def _extracted(self, record: Record[Any, Any]) -> str:
        assert not isinstance(self._node.topic, str), "a sink without a topic has an extractor"
        before = self._task.record_context
        offset, partition, source = (
            (-1, -1, None) if before is None else (before.offset, before.partition, before.topic)
        )
        context = RecordContext(record.timestamp, offset, partition, source, record.headers)
        topic = self._node.topic(record.key, record.value, context)
        if not isinstance(topic, str) or not topic:
            raise StreamsError(
                f"the topic extractor of sink {self.name} returned {topic!r}: expected the name of a topic"
            )
        return topic

    def _partitions(self, topic: str, record: Record[Any, Any]) -> tuple[int | None, ...]:
        """Return the partitions of the program's partitioner; one None leaves it to the producer."""
        if self._node.partitioner is None:
            return (None,)
        count = self._collector.partitions(topic)
        chosen = self._node.partitioner(topic, record.key, record.value, count)
        if chosen is None:
            return (None,)
        partitions = (chosen,) if isinstance(chosen, int) else tuple(chosen)
        for partition in partitions:
            if not 0 <= partition < count:
                raise StreamsError(
                    f"the partitioner of sink {self.name} returned partition {partition} of topic {topic}: "
                    f"expected 0 to {count - 1}"
                )
        return partitions
