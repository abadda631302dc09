"""A task in memory that runs operators of Kafka Streams one after the other, and collects what they forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pybroker.streams.operators.context import OperatorContext
from pybroker.streams.operators.table import OperatorSupplier, ValueGetter, ValueGetterSupplier
from pybroker.streams.processor import Cancellable, Processor, PunctuationType
from pybroker.streams.records import Headers, Record, RecordContext
from pybroker.streams.serdes import INT64, STRING, Serde
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.state.cache import Cache
from pybroker.streams.state.store import StateStore, StoreContext


class MemoryTask(StoreContext):
    """The stores, the current record and the clocks of one task. Changelog records are kept in `changes`."""

    def __init__(self, cache_bytes: int = 0) -> None:
        self.application_id = "application"
        self.default_key_serde: Serde[Any] | None = STRING
        self.default_value_serde: Serde[Any] | None = INT64
        self.stores: dict[str, StateStore] = {}
        self.changes: list[tuple[str, bytes, bytes | None, int | None]] = []
        self.wall_clock_ms = 0
        self.emit_interval_ms = 0
        self.metadata: dict[str, int] = {}
        self.dropped: list[str] = []
        self._cache = Cache(cache_bytes) if cache_bytes else None
        self._record_context: RecordContext | None = None
        self._stream_time = -1

    @property
    def record_context(self) -> RecordContext | None:
        return self._record_context

    def set_record_context(self, context: RecordContext | None) -> None:
        self._record_context = context

    @property
    def stream_time(self) -> int:
        return self._stream_time

    def advance_stream_time(self, timestamp: int) -> None:
        self._stream_time = max(self._stream_time, timestamp)

    @property
    def cache(self) -> Cache | None:
        return self._cache

    def changelog_topic(self, store_name: str) -> str:
        return f"{self.application_id}-{store_name}-changelog"

    def log_change(
        self, store_name: str, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers
    ) -> None:
        self.changes.append((store_name, key, value, timestamp))

    def add_store(self, builder: StoreBuilder) -> None:
        if builder.name not in self.stores:
            store = builder.build()
            self.stores[builder.name] = store
            store.init(self)


class MemoryContext(OperatorContext):
    """The context of one node: forwarded records go to `receive`."""

    application_id = "application"
    task_id = "0_0"

    def __init__(self, task: MemoryTask, node_name: str, receive: Callable[[Record[Any, Any]], None]) -> None:
        self.node_name = node_name
        self.default_key_serde = task.default_key_serde
        self.default_value_serde = task.default_value_serde
        self._task = task
        self._receive = receive

    @property
    def emit_interval_ms(self) -> int:  # type: ignore[override]
        return self._task.emit_interval_ms

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        before = self._task.record_context
        if before is not None:
            moved = RecordContext(record.timestamp, before.offset, before.partition, before.topic, record.headers)
            self._task.set_record_context(moved)
        self._receive(record)
        self._task.set_record_context(before)

    def state_store(self, name: str) -> Any:
        return self._task.stores[name]

    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        raise NotImplementedError

    @property
    def record_context(self) -> RecordContext | None:
        return self._task.record_context

    def set_record_context(self, context: RecordContext | None) -> None:
        self._task.set_record_context(context)

    @property
    def stream_time(self) -> int:
        return self._task.stream_time

    @property
    def wall_clock_time(self) -> int:
        return self._task.wall_clock_ms

    def commit(self) -> None:
        pass

    def drop(self, reason: str) -> None:
        self._task.dropped.append(reason)

    def processor_metadata(self, key: str) -> int | None:
        return self._task.metadata.get(key)

    def set_processor_metadata(self, key: str, value: int) -> None:
        self._task.metadata[key] = value


class OperatorChain:
    """Operators in a row: the first receives `pipe`, each forwards to the next, and the last to `forwarded`.

    `changes()` returns the forwarded changes since the last call as (key, new value, old value, timestamp).
    """

    def __init__(self, *suppliers: OperatorSupplier, task: MemoryTask | None = None) -> None:
        self.task = task or MemoryTask()
        self.forwarded: list[Record[Any, Any]] = []
        self.processors: list[Processor[Any, Any]] = []
        for supplier in suppliers:
            for builder in supplier.stores():
                self.task.add_store(builder)
        receive: Callable[[Record[Any, Any]], None] = self.forwarded.append
        for place, supplier in reversed(list(enumerate(suppliers))):
            processor = supplier()
            processor.init(MemoryContext(self.task, f"node-{place}", receive))
            self.processors.insert(0, processor)
            receive = processor.process
        self._receive = receive
        self._offset = 0

    @property
    def dropped(self) -> list[str]:
        """The reasons of all dropped records."""
        return self.task.dropped

    def pipe(self, key: Any, value: Any, timestamp: int, headers: Headers = ()) -> None:
        """Process one record."""
        self.task.advance_stream_time(timestamp)
        self.task.set_record_context(RecordContext(timestamp, self._offset, 0, "input", headers))
        self._offset += 1
        self._receive(Record(key, value, timestamp, headers))
        self.task.set_record_context(None)

    def flush(self) -> None:
        """Flush all stores, as a commit does."""
        for store in self.task.stores.values():
            store.flush()

    def records(self) -> list[Record[Any, Any]]:
        """Return the records that were forwarded since the last call."""
        records, self.forwarded[:] = list(self.forwarded), ()
        return records

    def changes(self) -> list[tuple[Any, Any, Any, int]]:
        """Return the changes that were forwarded since the last call."""
        return [(r.key, r.value.new_value, r.value.old_value, r.timestamp) for r in self.records()]

    def getter(self, supplier: ValueGetterSupplier) -> ValueGetter:
        """Return a getter of a table of this task."""
        getter = supplier.get()
        getter.init(MemoryContext(self.task, "reader", self.forwarded.append))
        return getter


def run(supplier: OperatorSupplier, records: Sequence[tuple[Any, Any, int]]) -> OperatorChain:
    """Run one operator with records of key, value and timestamp."""
    chain = OperatorChain(supplier)
    for key, value, timestamp in records:
        chain.pipe(key, value, timestamp)
    return chain
