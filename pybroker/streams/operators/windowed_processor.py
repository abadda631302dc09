"""The common part of aggregations over time windows and over sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.final_results import FinalResults
from pybroker.streams.operators.forwarding import ChangeForwarder, timestamped_flush_listener
from pybroker.streams.operators.stored_table import StoredTable
from pybroker.streams.operators.table import ValueGetter
from pybroker.streams.operators.value_getters import WindowStoreGetter
from pybroker.streams.processor import ProcessorContext
from pybroker.streams.records import NO_TIMESTAMP, Change, Record
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.state.window import TimestampedWindowStore
from pybroker.streams.windows import EmitStrategy, Window, Windowed


class Aggregation(msgspec.Struct, frozen=True):
    """The functions of an aggregation. `aggregator` receives the key, the value and the aggregate."""

    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]


class WindowedTable(StoredTable):
    """The base class of aggregations over windows of fixed length. Their store is a timestamped window store."""

    def __init__(self, builder: StoreBuilder, emit: EmitStrategy, aggregation: Aggregation) -> None:
        super().__init__(builder)
        self.emit = emit
        self.aggregation = aggregation

    def make_getter(self, store_name: str) -> ValueGetter:
        """Return a getter of the store. Its keys are `Windowed`."""
        return WindowStoreGetter(store_name)


class WindowedProcessor(OperatorProcessor):
    """Owns the observed stream time, the window store and the emission of results.

    This is `AbstractKStreamTimeWindowAggregateProcessor`. The observed stream time is the largest timestamp of this
    node's records. It is not the stream time of the task.
    """

    def __init__(self, table: WindowedTable) -> None:
        self._store_name = table.builder.name
        self._emits_on_close = table.emit.on_window_close
        self._send_old_values = table.sends_old_values
        self._aggregation = table.aggregation
        self._observed_stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        """Open the store."""
        super().init(context)
        self._store: TimestampedWindowStore[Any, Any] = context.state_store(self._store_name)
        if self._emits_on_close:
            # The cache would delay the writes that the emission reads. The DSL builds the store without a cache.
            self._final_results = FinalResults(self.context, self._store_name)
            self._forwarder = ChangeForwarder(self.context, self._send_old_values)
        else:
            listener = timestamped_flush_listener(self.context)
            self._forwarder = ChangeForwarder(self.context, self._send_old_values, self._store, listener)

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the observed stream time."""
        return ((self, "_observed_stream_time"),)

    def forward_update(self, record: Record[Any, Any], window: Window, change: Change[Any], timestamp: int) -> None:
        """Forward the change of a window, unless results are emitted when windows close."""
        if not self._emits_on_close:
            key = Windowed(record.key, window)
            self._forwarder.maybe_forward(Record(key, change, timestamp, record.headers))

    def emit_closed(self, record: Record[Any, Any], close_time: int) -> None:
        """Forward the results of windows that have closed since the last emission, with the headers of the record."""
        if not self._emits_on_close or not self._final_results.due(close_time):
            return
        latest_start = self.latest_closed_start(close_time)
        if latest_start < 0:
            return
        earliest_start = self.earliest_closed_start(self._final_results.last_close_time)
        if not self.has_closed(earliest_start, latest_start):
            return
        for key, value in self._store.fetch_all(earliest_start, latest_start):
            self._forwarder.maybe_forward(Record(key, Change(value.value, None), value.timestamp, record.headers))
        self._final_results.emitted(close_time)

    def earliest_closed_start(self, last_close_time: int) -> int:
        """Return the smallest start of a window that is not emitted yet, for the close time of the last emission."""
        raise NotImplementedError

    def latest_closed_start(self, close_time: int) -> int:
        """Return the largest start of a window that is closed, or a negative number."""
        raise NotImplementedError

    def has_closed(self, earliest_start: int, latest_start: int) -> bool:
        """Return whether a window between two starts can have closed since the last emission."""
        raise NotImplementedError

    def drop_expired(self, window: str, close_time: int) -> None:
        """Drop the current record for a window that is closed."""
        self.context.drop(
            f"expired window {window}: windows that end before {close_time} are closed, "
            f"stream time is {self._observed_stream_time}"
        )
