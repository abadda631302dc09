"""The aggregation of a stream over sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.final_results import FinalResults
from pybroker.streams.operators.forwarding import ChangeForwarder, session_flush_listener
from pybroker.streams.operators.stored_table import StoredTable
from pybroker.streams.operators.table import ValueGetter
from pybroker.streams.operators.value_getters import SessionStoreGetter
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import NO_TIMESTAMP, Change, Record
from pybroker.streams.state.builders import StoreBuilder
from pybroker.streams.state.session import SessionStore
from pybroker.streams.windows import EmitStrategy, SessionWindow, SessionWindows, Windowed


class SessionAggregation(msgspec.Struct, frozen=True):
    """The functions of an aggregation over sessions.

    `aggregator` receives the key, the value and the aggregate. `merger` receives the key and two aggregates.
    """

    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    merger: Callable[[Any, Any, Any], Any]


class StreamSessionWindowAggregate(StoredTable):
    """Adds each value of a key to the aggregate of its session (`KStreamSessionWindowAggregate`).

    A record merges all sessions that are at most the inactivity gap apart from its timestamp.
    """

    def __init__(
        self,
        windows: SessionWindows,
        builder: StoreBuilder,
        emit: EmitStrategy,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        merger: Callable[[Any, Any, Any], Any],
    ) -> None:
        super().__init__(builder)
        self.windows = windows
        self.emit = emit
        self.aggregation = SessionAggregation(initializer, aggregator, merger)

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _SessionProcessor(self)

    def make_getter(self, store_name: str) -> ValueGetter:
        """Return a getter of the store. Its keys are `Windowed`."""
        return SessionStoreGetter(store_name)


class _SessionProcessor(OperatorProcessor):
    """Replaces the sessions near a record by one merged session.

    A session is closed if its end is earlier than the observed stream time of this node, minus gap and grace.
    """

    def __init__(self, table: StreamSessionWindowAggregate) -> None:
        self._windows = table.windows
        self._store_name = table.builder.name
        self._emits_on_close = table.emit.on_window_close
        self._aggregation = table.aggregation
        self._send_old_values = table.sends_old_values
        self._observed_stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store: SessionStore[Any, Any] = context.state_store(self._store_name)
        if self._emits_on_close:
            self._final_results = FinalResults(self.context, self._store_name)
            self._forwarder = ChangeForwarder(self.context, self._send_old_values)
        else:
            listener = session_flush_listener(self.context)
            self._forwarder = ChangeForwarder(self.context, self._send_old_values, self._store, listener)

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the observed stream time."""
        return ((self, "_observed_stream_time"),)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.drop("null key")
            return
        timestamp = record.timestamp
        self._observed_stream_time = max(self._observed_stream_time, timestamp)
        close_time = self._observed_stream_time - self._windows.grace_ms - self._windows.gap_ms
        aggregate = self._aggregation.initializer()
        window = SessionWindow(timestamp, timestamp)
        gap_ms = self._windows.gap_ms
        sessions = list(self._store.find_sessions(record.key, timestamp - gap_ms, timestamp + gap_ms))
        for key, value in sessions:
            aggregate = self._aggregation.merger(record.key, aggregate, value)
            window = SessionWindow(min(window.start, key.window.start), max(window.end, key.window.end))
        if window.end < close_time:
            self._drop_expired(window, close_time)
        else:
            self._replace(record, sessions, window, aggregate)
        self._emit_closed(record, close_time)

    def _replace(
        self, record: Record[Any, Any], sessions: list[tuple[Windowed[Any], Any]], window: SessionWindow, aggregate: Any
    ) -> None:
        """Remove the merged sessions, and put the session that contains them and the record."""
        if window != SessionWindow(record.timestamp, record.timestamp):
            for key, value in sessions:
                self._store.remove(key)
                self._forward_update(key, None, value)
        aggregate = self._aggregation.aggregator(record.key, record.value, aggregate)
        session = Windowed(record.key, window)
        self._store.put(session, aggregate)
        self._forward_update(session, aggregate, None)

    def _forward_update(self, session: Windowed[Any], new_value: Any, old_value: Any) -> None:
        """Forward the change of a session, without headers: a removal belongs to earlier records too."""
        if not self._emits_on_close:
            self._forwarder.maybe_forward(Record(session, Change(new_value, old_value), session.window.end))

    def _emit_closed(self, record: Record[Any, Any], close_time: int) -> None:
        """Forward the results of sessions that have closed since the last emission, with the headers of the record."""
        if not self._emits_on_close or not self._final_results.due(close_time):
            return
        # The end of a session is inclusive: a session that ends at the close time is still open.
        latest_end = close_time - 1
        earliest_end = max(0, self._final_results.last_close_time)
        if latest_end < 0 or latest_end < earliest_end:
            return
        for key, value in self._store.find_all_sessions(earliest_end, latest_end):
            self._forwarder.maybe_forward(Record(key, Change(value, None), key.window.end, record.headers))
        self._final_results.emitted(close_time)

    def _drop_expired(self, window: SessionWindow, close_time: int) -> None:
        self.context.drop(
            f"expired window [{window.start}, {window.end}]: sessions that end before {close_time} are closed, "
            f"stream time is {self._observed_stream_time}"
        )
