"""Joins of two streams within a window of time (`KStreamKStreamJoin`).

Each side of a join writes its records to a window store of its own, and searches the window store of the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pybroker.streams.operators.context import OperatorContext, OperatorProcessor
from pybroker.streams.operators.table import OperatorSupplier
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import NO_TIMESTAMP, Record
from pybroker.streams.state.outer_join import LeftOrRight, TimestampedKeyAndJoinSide
from pybroker.streams.windows import MAX_TIMESTAMP, JoinWindows

if TYPE_CHECKING:
    from pybroker.streams.state.builders import StoreBuilder
    from pybroker.streams.state.key_value import KeyValueStore
    from pybroker.streams.state.window import WindowStore

StreamJoiner = Callable[[Any, Any, Any], Any]
"""Returns the result of a join from the key, the value of this side, and the value of the other side."""


class TimeTracker:
    """The clock that both sides of a join share in one task."""

    def __init__(self) -> None:
        self.stream_time = NO_TIMESTAMP
        """The largest timestamp of both sides, in milliseconds."""
        self.min_time = MAX_TIMESTAMP
        """A lower bound of the timestamps in the outer-join store, in milliseconds."""
        self.next_emit_time = 0
        """The wall-clock time of the next scan of the outer-join store, in milliseconds."""

    def advance_stream_time(self, timestamp: int) -> None:
        """Raise the stream time to the timestamp of a record."""
        self.stream_time = max(self.stream_time, timestamp)

    def lower_min_time(self, timestamp: int) -> None:
        """Lower the bound to the timestamp of a record that enters the outer-join store."""
        self.min_time = min(self.min_time, timestamp)


class TimeTrackerSupplier:
    """Owns the trackers of one join, by task."""

    def __init__(self) -> None:
        self._trackers: dict[str, TimeTracker] = {}

    def get(self, task_id: str) -> TimeTracker:
        """Return the tracker of a task. The first call makes it."""
        return self._trackers.setdefault(task_id, TimeTracker())

    def remove(self, task_id: str) -> None:
        """Forget the tracker of a task that closes."""
        self._trackers.pop(task_id, None)


class JoinWindowStore(OperatorSupplier):
    """Writes each record of one side to its window store, after forwarding it (`KStreamJoinWindow`)."""

    def __init__(self, builder: StoreBuilder) -> None:
        self.builder = builder

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _JoinWindowProcessor(self.builder.name)

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the window store."""
        return (self.builder,)


class _JoinWindowProcessor(OperatorProcessor):
    def __init__(self, store_name: str) -> None:
        self._store_name = store_name

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store: WindowStore[Any, Any] = context.state_store(self._store_name)

    def process(self, record: Record[Any, Any]) -> None:
        # The join precedes the put: a record must not find itself in its own window store.
        self.context.forward(record)
        # A record without a key never joins.
        if record.key is not None:
            self._store.put(record.key, record.value, record.timestamp)


class StreamStreamJoin(OperatorSupplier):
    """Joins the records of one side with the window store of the other side.

    The joiner takes the key, the value of this side and the value of the other side. The right side needs a joiner
    with its arguments exchanged: see `reverse_joiner`.
    """

    is_left: ClassVar[bool]

    def __init__(
        self,
        windows: JoinWindows,
        joiner: StreamJoiner,
        outer: bool,
        time_tracker_supplier: TimeTrackerSupplier,
        other_builder: StoreBuilder,
        outer_builder: StoreBuilder | None = None,
    ) -> None:
        """Define one side of a join.

        Args:
            windows: the condition on time, from the left side to the right side.
            joiner: makes the result.
            outer: whether a record of this side without a match has a result.
            time_tracker_supplier: the trackers that both sides share.
            other_builder: the window store of the other side.
            outer_builder: the store of records without a match, which both sides share; None for an inner join.
        """
        self.windows = windows
        self.joiner = joiner
        self.outer = outer
        self.time_tracker_supplier = time_tracker_supplier
        self.other_builder = other_builder
        self.outer_builder = outer_builder

    @property
    def before_ms(self) -> int:
        """How far records of the other side can precede a record of this side, in milliseconds."""
        return self.windows.before_ms if self.is_left else self.windows.after_ms

    @property
    def after_ms(self) -> int:
        """How far records of the other side can follow a record of this side, in milliseconds."""
        return self.windows.after_ms if self.is_left else self.windows.before_ms

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _StreamJoinProcessor(self)

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builders of the other side's window store and of the outer-join store."""
        if self.outer_builder is None:
            return (self.other_builder,)
        return (self.other_builder, self.outer_builder)


class LeftSideJoin(StreamStreamJoin):
    """The left side of a join of two streams (`KStreamKStreamJoinLeftSide`)."""

    is_left = True


class RightSideJoin(StreamStreamJoin):
    """The right side of a join of two streams (`KStreamKStreamJoinRightSide`)."""

    is_left = False


def reverse_joiner(joiner: StreamJoiner) -> StreamJoiner:
    """Return a joiner that takes the value of the right side before the value of the left side."""
    return lambda key, right, left: joiner(key, left, right)


def _drops(context: OperatorContext, record: Record[Any, Any]) -> bool:
    """Drop a record that has no key or no value, and return whether it is dropped."""
    if record.key is not None and record.value is not None:
        return False
    context.drop("null key or value")
    return True


def _int64(value: int) -> int:
    """Return the sum of two signed 64-bit integers as Java computes it, with overflow."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


class _StreamJoinProcessor(OperatorProcessor):
    def __init__(self, side: StreamStreamJoin) -> None:
        self._side = side

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        side = self._side
        self._other_store: WindowStore[Any, Any] = context.state_store(side.other_builder.name)
        self._tracker = side.time_tracker_supplier.get(context.task_id)
        self._outer_store: KeyValueStore[TimestampedKeyAndJoinSide[Any], LeftOrRight[Any, Any]] | None = None
        if side.outer_builder is not None:
            self._outer_store = context.state_store(side.outer_builder.name)

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the clock of both sides."""
        return (self._tracker, "stream_time"), (self._tracker, "min_time")

    def process(self, record: Record[Any, Any]) -> None:
        side, tracker = self._side, self._tracker
        tracker.advance_stream_time(record.timestamp)
        if side.outer and record.key is None and record.value is not None:
            self._forward_unmatched(record)
            return
        if _drops(self.context, record):
            return
        if self._outer_store is not None and record.timestamp == tracker.stream_time:
            self._emit_expired(record)
        from_ms = max(0, record.timestamp - side.before_ms)
        to_ms = max(0, record.timestamp + side.after_ms)
        matched = False
        for other_timestamp, other_value in self._other_store.fetch_range(record.key, from_ms, to_ms):
            matched = True
            self._forward_match(record, other_timestamp, other_value)
        if side.outer and not matched:
            # A window that has closed on both sides cannot get a match. The outer-join store would emit it later.
            if self._outer_store is None or to_ms < tracker.stream_time:
                self._forward_unmatched(record)
            else:
                tracker.lower_min_time(record.timestamp)
                self._outer_store.put(
                    TimestampedKeyAndJoinSide(record.key, record.timestamp, side.is_left),
                    LeftOrRight(record.value, side.is_left),
                )

    def _forward_unmatched(self, record: Record[Any, Any]) -> None:
        self.context.forward(record.with_value(self._side.joiner(record.key, record.value, None)))

    def _forward_match(self, record: Record[Any, Any], other_timestamp: int, other_value: Any) -> None:
        if self._outer_store is not None:
            # The call deletes the record of the other side, if it is in the store. It never adds a record.
            other_key = TimestampedKeyAndJoinSide(record.key, other_timestamp, not self._side.is_left)
            self._outer_store.put_if_absent(other_key, cast(Any, None))
        value = self._side.joiner(record.key, record.value, other_value)
        self.context.forward(record.with_value(value).with_timestamp(max(record.timestamp, other_timestamp)))

    def _emit_expired(self, record: Record[Any, Any]) -> None:
        """Forward and delete the records without a match whose windows have closed."""
        side, tracker = self._side, self._tracker
        # Without a known minimum the sum overflows, as in Kafka. The scan then finds records that were restored.
        if _int64(tracker.min_time + side.after_ms + side.windows.grace_ms) >= tracker.stream_time:
            return
        now = self.context.wall_clock_time
        if now < tracker.next_emit_time:
            return
        tracker.next_emit_time = now + self.context.emit_interval_ms
        self._scan_expired(record)

    def _scan_expired(self, record: Record[Any, Any]) -> None:
        assert self._outer_store is not None
        tracker = self._tracker
        tracker.min_time = MAX_TIMESTAMP
        open_sides: set[bool] = set()
        previous: TimestampedKeyAndJoinSide[Any] | None = None
        # Keys are ordered by timestamp: after the first open window of a side, all windows of that side are open.
        for key, value in self._outer_store.all():
            tracker.min_time = key.timestamp
            if len(open_sides) == 2:
                break
            if self._is_open(key):
                open_sides.add(key.is_left)
                continue
            self._forward_expired(record, key, value)
            # One key can have several values. Its deletion waits until all values are forwarded.
            if previous is not None and previous != key:
                self._outer_store.put(previous, None)
            previous = key
        if previous is not None:
            self._outer_store.put(previous, None)

    def _is_open(self, key: TimestampedKeyAndJoinSide[Any]) -> bool:
        windows = self._side.windows
        reach_ms = windows.after_ms if key.is_left else windows.before_ms
        return _int64(key.timestamp + reach_ms + windows.grace_ms) >= self._tracker.stream_time

    def _forward_expired(
        self, record: Record[Any, Any], key: TimestampedKeyAndJoinSide[Any], stored: LeftOrRight[Any, Any]
    ) -> None:
        this, other = (stored.left, stored.right) if self._side.is_left else (stored.right, stored.left)
        value = self._side.joiner(key.key, this, other)
        # The headers are those of the record that closes the window, as in Kafka.
        self.context.forward(record.with_key(key.key).with_value(value).with_timestamp(key.timestamp))

    def close(self) -> None:
        self._side.time_tracker_supplier.remove(self.context.task_id)


class SelfJoin(OperatorSupplier):
    """Joins a stream with itself, with one window store (`KStreamKStreamSelfJoin`)."""

    def __init__(self, builder: StoreBuilder, windows: JoinWindows, joiner: StreamJoiner, retention_ms: int) -> None:
        """Define a join of a stream with itself.

        Args:
            builder: the window store of the stream.
            windows: the condition on time.
            joiner: makes the result.
            retention_ms: the size of the window plus its grace, in milliseconds.
        """
        self.builder = builder
        self.windows = windows
        self.joiner = joiner
        self.retention_ms = retention_ms

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _SelfJoinProcessor(self)

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the window store."""
        return (self.builder,)


class _SelfJoinProcessor(OperatorProcessor):
    def __init__(self, supplier: SelfJoin) -> None:
        self._supplier = supplier
        self._stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store: WindowStore[Any, Any] = context.state_store(self._supplier.builder.name)

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the stream time of the join."""
        return ((self, "_stream_time"),)

    def process(self, record: Record[Any, Any]) -> None:
        if _drops(self.context, record):
            return
        joiner = self._supplier.joiner
        self._stream_time = max(self._stream_time, record.timestamp)
        # The own result waits for results with smaller timestamps: the order is that of a join of two streams.
        own = record.with_value(joiner(record.key, record.value, record.value))
        self._join_as_left(record)
        pending = record.timestamp > self._stream_time - self._supplier.retention_ms + 1
        windows = self._supplier.windows
        for other_timestamp, other_value in self._fetch(record, windows.after_ms, windows.before_ms):
            if pending and record.timestamp < other_timestamp:
                pending = False
                self.context.forward(own)
            value = joiner(record.key, other_value, record.value)
            self.context.forward(record.with_value(value).with_timestamp(max(record.timestamp, other_timestamp)))
        if pending:
            self.context.forward(own)

    def _join_as_left(self, record: Record[Any, Any]) -> None:
        windows = self._supplier.windows
        for other_timestamp, other_value in self._fetch(record, windows.before_ms, windows.after_ms):
            value = self._supplier.joiner(record.key, record.value, other_value)
            self.context.forward(record.with_value(value).with_timestamp(max(record.timestamp, other_timestamp)))

    def _fetch(self, record: Record[Any, Any], before_ms: int, after_ms: int) -> list[tuple[int, Any]]:
        from_ms = max(0, record.timestamp - before_ms)
        to_ms = max(0, record.timestamp + after_ms)
        return list(self._store.fetch_range(record.key, from_ms, to_ms))
