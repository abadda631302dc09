"""The aggregation of a stream over tumbling, hopping or unlimited windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pybroker.streams.operators.windowed_processor import Aggregation, WindowedProcessor, WindowedTable
from pybroker.streams.processor import Processor
from pybroker.streams.records import NO_TIMESTAMP, Change, Record, ValueAndTimestamp
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.windows import AnyWindows, EmitStrategy, TimeWindows, Window


class StreamWindowAggregate(WindowedTable):
    """Adds each value of a key to the aggregates of all windows that contain its timestamp (`KStreamWindowAggregate`).

    Raises:
        ValueError: results are to be emitted when windows close, and the windows never close.
    """

    def __init__(
        self,
        windows: AnyWindows,
        builder: StoreBuilder,
        emit: EmitStrategy,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
    ) -> None:
        if emit.on_window_close and not isinstance(windows, TimeWindows):
            raise ValueError(
                f"invalid emit strategy ON_WINDOW_CLOSE for {type(windows).__name__}: expected TimeWindows or "
                "SlidingWindows"
            )
        super().__init__(builder, emit, Aggregation(initializer, aggregator))
        self.windows = windows

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _WindowAggregateProcessor(self, self.windows)


class _WindowAggregateProcessor(WindowedProcessor):
    """Updates the windows of a record that are open: those whose end is later than the close time."""

    def __init__(self, table: WindowedTable, windows: AnyWindows) -> None:
        super().__init__(table)
        self._windows = windows

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.drop("null key")
            return
        self._observed_stream_time = max(self._observed_stream_time, record.timestamp)
        close_time = self._observed_stream_time - self._windows.grace_ms
        for window in self._windows.windows_for(record.timestamp).values():
            if window.end > close_time:
                self._update(record, window)
            else:
                self.drop_expired(f"[{window.start}, {window.end})", close_time)
        self.emit_closed(record, close_time)

    def _update(self, record: Record[Any, Any], window: Window) -> None:
        old = self._store.fetch(record.key, window.start)
        if old is None:
            old_value, timestamp = self._aggregation.initializer(), record.timestamp
        else:
            old_value, timestamp = old.value, max(record.timestamp, old.timestamp)
        new_value = self._aggregation.aggregator(record.key, record.value, old_value)
        stored = None if new_value is None else ValueAndTimestamp(new_value, timestamp)
        self._store.put(record.key, stored, window.start)
        self.forward_update(record, window, Change(new_value, old_value), timestamp)

    def earliest_closed_start(self, last_close_time: int) -> int:
        # A window that ends at the close time is closed, because its end is exclusive. It is emitted already.
        return 0 if last_close_time == NO_TIMESTAMP else max(0, last_close_time - self._windows.size_ms) + 1

    def latest_closed_start(self, close_time: int) -> int:
        return close_time - self._windows.size_ms

    def has_closed(self, earliest_start: int, latest_start: int) -> bool:
        # Both ranges of starts are equal if no window starts after the last emission and up to the latest start.
        if self._final_results.last_close_time == NO_TIMESTAMP:
            return True
        windows_for = self._windows.windows_for
        return windows_for(latest_start) != windows_for(earliest_start - 1)
