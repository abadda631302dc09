"""The aggregation of a stream over sliding windows (KIP-450).

A window exists for each distinct set of records that are at most the time difference apart. Each record has a left
window, which ends at its timestamp, and a right window, which starts 1 ms later if it contains another record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.windowed_processor import Aggregation, WindowedProcessor, WindowedTable
from pybroker.streams.processor import Processor
from pybroker.streams.records import NO_TIMESTAMP, Change, Record, ValueAndTimestamp
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.windows import EmitStrategy, SlidingWindows, TimeWindow, Window

Stored = ValueAndTimestamp[Any]
"""The aggregate of a window, and the largest timestamp of the records in it."""


class StreamSlidingWindowAggregate(WindowedTable):
    """Adds each value of a key to all sliding windows that contain its timestamp (`KStreamSlidingWindowAggregate`)."""

    def __init__(
        self,
        windows: SlidingWindows,
        builder: StoreBuilder,
        emit: EmitStrategy,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
    ) -> None:
        super().__init__(builder, emit, Aggregation(initializer, aggregator))
        self.windows = windows

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _SlidingWindowProcessor(self, self.windows)


class _Neighbours:
    """The result of reading the existing windows near a record. It determines which windows the record creates."""

    def __init__(self) -> None:
        self.starts: set[int] = set()
        """The starts of all windows that were read."""
        self.left: Stored | None = None
        """The latest window that ends before the record. Its records can be in the record's left window."""
        self.right: Stored | None = None
        """The window with the records of the record's right window."""
        self.has_left_window = False
        self.has_right_window = False
        self.previous_timestamp: int | None = None
        """The timestamp of the record before this one; None if its right window exists or is not needed."""
        self.is_complete = False
        """Whether a record with the same timestamp has created all windows."""


class _SlidingWindowProcessor(WindowedProcessor):
    """Updates the windows that contain a record, and creates those that do not exist yet."""

    def __init__(self, table: WindowedTable, windows: SlidingWindows) -> None:
        super().__init__(table)
        self._difference_ms = windows.time_difference_ms
        self._grace_ms = windows.grace_ms
        self._close_time = 0

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None or record.value is None:
            self.context.drop("null key or value")
            return
        timestamp = record.timestamp
        self._observed_stream_time = max(self._observed_stream_time, timestamp)
        self._close_time = self._observed_stream_time - self._grace_ms
        latest_end = timestamp + self._difference_ms
        if latest_end < self._close_time:
            self.drop_expired(f"[{timestamp}, {latest_end}]", self._close_time)
        elif timestamp < self._difference_ms:
            # As in Kafka, an early record does not emit closed windows.
            self._process_early(record)
        else:
            neighbours = self._update_neighbours(record)
            if not neighbours.is_complete:
                self._create_windows(record, neighbours)
            self.emit_closed(record, self._close_time)

    def _update_neighbours(self, record: Record[Any, Any]) -> _Neighbours:
        """Update the windows that contain the record, from the latest to the earliest, and return the result."""
        timestamp = record.timestamp
        neighbours = _Neighbours()
        earliest_start = max(0, timestamp - 2 * self._difference_ms)
        # The range includes the start of the record's right window.
        windows = self._store.backward_fetch_keys(record.key, record.key, earliest_start, timestamp + 1)
        for key, stored in windows:
            start = key.window.start
            end = start + self._difference_ms
            neighbours.starts.add(start)
            if start == timestamp + 1:
                neighbours.has_right_window = True
            elif end > timestamp:
                if neighbours.right is None:
                    neighbours.right = stored
                self._update(record, key.window, stored)
            elif end == timestamp:
                neighbours.has_left_window = True
                self._update(record, key.window, stored)
                if stored.timestamp >= timestamp:
                    neighbours.is_complete = True
                    break
                neighbours.previous_timestamp = stored.timestamp
            else:
                neighbours.left = stored
                neighbours.previous_timestamp = stored.timestamp
                break
        return neighbours

    def _create_windows(self, record: Record[Any, Any], neighbours: _Neighbours) -> None:
        """Create the right window of the previous record, and the left and right window of this record, if needed."""
        timestamp = record.timestamp
        previous = neighbours.previous_timestamp
        if (
            previous is not None
            and previous + 1 not in neighbours.starts
            and previous + 1 + self._difference_ms >= timestamp
        ):
            self._create_previous_right_window(record, previous)
        if not neighbours.has_left_window:
            left = neighbours.left
            if left is not None and previous is not None and timestamp - self._difference_ms <= previous:
                value = left.value
            else:
                value = self._aggregation.initializer()
            window = TimeWindow(timestamp - self._difference_ms, timestamp)
            self._update(record, window, ValueAndTimestamp(value, timestamp))
        self._create_right_window(record, neighbours)

    def _process_early(self, record: Record[Any, Any]) -> None:
        """Process a record that is less than the time difference after the epoch.

        The window [0, time difference] is the left window of all early records.
        """
        timestamp = record.timestamp
        if timestamp < 0:
            raise StreamsError(f"invalid timestamp {timestamp}: sliding windows expect milliseconds >= 0")
        neighbours = _Neighbours()
        combined: Stored | None = None
        for key, stored in self._store.fetch_keys(record.key, record.key, 0, timestamp + 1):
            start = key.window.start
            neighbours.starts.add(start)
            if start == 0:
                combined = stored
                # A later record in the combined window has created the right window of the previous record already.
                if stored.timestamp < timestamp:
                    neighbours.previous_timestamp = stored.timestamp
            elif start <= timestamp:
                neighbours.right = stored
                self._update(record, key.window, stored)
            else:
                neighbours.has_right_window = True
        if neighbours.right is None and combined is not None and combined.timestamp > timestamp:
            # No window starts after 0 and up to this record: all records of the combined window are later.
            neighbours.right = combined
        self._create_right_window(record, neighbours)
        previous = neighbours.previous_timestamp
        if previous is not None and previous + 1 not in neighbours.starts:
            self._create_previous_right_window(record, previous)
        if combined is None:
            combined = ValueAndTimestamp(self._aggregation.initializer(), timestamp)
        self._update(record, TimeWindow(0, self._difference_ms), combined)

    def _create_previous_right_window(self, record: Record[Any, Any], previous: int) -> None:
        """Create the right window of the previous record. This record is the only one in it."""
        window = TimeWindow(previous + 1, previous + 1 + self._difference_ms)
        self._update(record, window, ValueAndTimestamp(self._aggregation.initializer(), record.timestamp))

    def _create_right_window(self, record: Record[Any, Any], neighbours: _Neighbours) -> None:
        """Create the right window of the record, if another window contains later records."""
        right = neighbours.right
        if neighbours.has_right_window or right is None or right.timestamp <= record.timestamp:
            return
        start = record.timestamp + 1
        self._store.put(record.key, right, start)
        window = TimeWindow(start, start + self._difference_ms)
        self.forward_update(record, window, Change(right.value, None), right.timestamp)

    def _update(self, record: Record[Any, Any], window: Window, stored: Stored) -> None:
        """Add the record to the aggregate of a window, unless the window is closed."""
        if window.end < self._close_time:
            self.drop_expired(f"[{window.start}, {window.end}]", self._close_time)
            return
        new_value = self._aggregation.aggregator(record.key, record.value, stored.value)
        timestamp = record.timestamp if stored.value is None else max(record.timestamp, stored.timestamp)
        updated = None if new_value is None else ValueAndTimestamp(new_value, timestamp)
        self._store.put(record.key, updated, window.start)
        self.forward_update(record, window, Change(new_value, stored.value), timestamp)

    def earliest_closed_start(self, last_close_time: int) -> int:
        return 0 if last_close_time == NO_TIMESTAMP else max(0, last_close_time - self._difference_ms)

    def latest_closed_start(self, close_time: int) -> int:
        # The end of a sliding window is inclusive: a window that ends at the close time is still open.
        return close_time - self._difference_ms - 1

    def has_closed(self, earliest_start: int, latest_start: int) -> bool:  # noqa: ARG002 - a sliding window can end at any time
        return True
