"""The operator that delays the updates of a table (`KTableSuppressProcessorSupplier`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.table import Table, TableSupplier, ValueGetter, ValueGetterSupplier
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import NO_TIMESTAMP, Change, Record, ValueAndTimestamp
from pybroker.streams.state.buffers import Eviction
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.state.suppress_buffer import SuppressBuffer
from pybroker.streams.suppressed import Suppressed


class TableSuppress(TableSupplier):
    """Buffers the latest update of each key until a condition is met, and forwards it then.

    The condition must have its waiting time: `Suppressed.with_grace` is called before.
    """

    def __init__(self, suppressed: Suppressed, builder: StoreBuilder, parent: Table) -> None:
        self.suppressed = suppressed
        self.builder = builder
        self._parent = parent
        # The buffer returns the old value of a buffered key to readers of this table.
        parent.enable_sending_old_values(True)

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        if self.suppressed.wait_ms is None:
            raise StreamsError(f"the grace of the windows before buffer {self.builder.name!r} is not known")
        return _SuppressProcessor(self.suppressed, self.suppressed.wait_ms, self.builder.name)

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the buffer."""
        return (self.builder,)

    def view(self) -> ValueGetterSupplier:
        """Return getters that return the value before the buffered updates, or the parent's value."""
        return _SuppressGetters(self._parent, self.builder.name)

    def enable_sending_old_values(self, force_materialization: bool) -> bool:
        """Return whether the parent sends old values: an update in the buffer keeps its old value."""
        return self._parent.enable_sending_old_values(force_materialization)


class _SuppressProcessor(OperatorProcessor):
    """Buffers each update, then forwards those whose time has passed and those beyond the limits of the buffer."""

    def __init__(self, suppressed: Suppressed, wait_ms: int, store_name: str) -> None:
        self._wait_ms = wait_ms
        self._waits_from_window_end = suppressed.until_close
        self._limits = suppressed.buffer
        # The deletion of a window that was never forwarded has no meaning downstream.
        self._drops_tombstones = suppressed.until_close
        self._store_name = store_name
        self._observed_stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._buffer: SuppressBuffer[Any, Any] = context.state_store(self._store_name)

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the observed stream time."""
        return ((self, "_observed_stream_time"),)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        self._observed_stream_time = max(self._observed_stream_time, record.timestamp)
        context = self.context.record_context
        if context is None:
            raise StreamsError(f"{self.context.node_name} cannot buffer a record without a record context")
        time = record.key.window.end if self._waits_from_window_end else context.timestamp
        self._buffer.put(time, record, context)
        expiry = self._observed_stream_time - self._wait_ms
        self._buffer.evict_while(lambda: self._buffer.min_timestamp <= expiry, self._emit)
        if self._is_full():
            self._shrink()

    def _is_full(self) -> bool:
        return (
            self._buffer.num_records > self._limits.record_limit or self._buffer.buffer_size > self._limits.byte_limit
        )

    def _shrink(self) -> None:
        """Forward the oldest records until the buffer is within its limits, or raise StreamsError."""
        if not self._limits.emits_early:
            raise StreamsError(
                f"the buffer of {self.context.node_name} is full: {self._buffer.num_records} records of at most "
                f"{self._limits.record_limit}, {self._buffer.buffer_size} bytes of at most {self._limits.byte_limit}"
            )
        self._buffer.evict_while(self._is_full, self._emit)

    def _emit(self, eviction: Eviction[Any, Change[Any]]) -> None:
        """Forward an update in the record context that it had when it was buffered."""
        change = eviction.value
        if change.new_value is None and self._drops_tombstones:
            return
        buffered, current = eviction.record_context, self.context.record_context
        self.context.set_record_context(buffered)
        try:
            self.context.forward(Record(eviction.key, change, buffered.timestamp, buffered.headers))
        finally:
            self.context.set_record_context(current)


class _SuppressGetters(ValueGetterSupplier):
    """Supplies getters that read the buffer and the parent."""

    def __init__(self, parent: Table, store_name: str) -> None:
        self._parent = parent.value_getter_supplier()
        self._store_name = store_name

    @property
    def store_names(self) -> Sequence[str]:
        return (self._store_name, *self._parent.store_names)

    def get(self) -> ValueGetter:
        return _SuppressGetter(self._parent.get(), self._store_name)


class _SuppressGetter(ValueGetter):
    """Returns the value that was forwarded last: for a buffered key, the value before the buffered updates."""

    def __init__(self, parent: ValueGetter, store_name: str) -> None:
        self._parent = parent
        self._store_name = store_name

    def init(self, context: ProcessorContext) -> None:
        self._parent.init(context)
        self._buffer: SuppressBuffer[Any, Any] = context.state_store(self._store_name)

    def get(self, key: Any) -> ValueAndTimestamp[Any] | None:
        is_buffered, value = self._buffer.prior_value_for_buffered(key)
        return value if is_buffered else self._parent.get(key)

    def close(self) -> None:
        self._parent.close()
