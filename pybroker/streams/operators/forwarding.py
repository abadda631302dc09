"""How operators with a store forward changes: at once, or when the cache of the store flushes an entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pybroker.streams.operators.context import OperatorContext
from pybroker.streams.operators.value_getters import value_or_none
from pybroker.streams.records import Change, Record, ValueAndTimestamp
from pybroker.streams.state.wrapper import PUT_IS_LATEST, PUT_NOT_PUT, TableStore

FlushListener = Callable[[Record[Any, Change[Any]]], None]
"""Receives each entry that a cache flushes, with the old value if `send_old_values` is set."""


class CachingStore(Protocol):
    """A store that can have a cache."""

    def set_flush_listener(self, listener: FlushListener, send_old_values: bool) -> bool:
        """Register the listener, and return whether the store has a cache."""


class ChangeForwarder:
    """Forwards the changes of an operator, unless the cache of its store forwards them later.

    Without a store, all changes are forwarded at once (`TimestampedTupleForwarder`).
    """

    def __init__(
        self,
        context: OperatorContext,
        send_old_values: bool,
        store: CachingStore | None = None,
        listener: FlushListener | None = None,
    ) -> None:
        self._forward = context.forward
        self._send_old_values = send_old_values
        self._cached = (
            store is not None and listener is not None and store.set_flush_listener(listener, send_old_values)
        )

    def maybe_forward(self, record: Record[Any, Change[Any]]) -> None:
        """Forward a change if the store has no cache."""
        if self._cached:
            return
        change = record.value
        if not self._send_old_values and change.old_value is not None:
            record = record.with_value(Change(change.new_value, None, change.is_latest))
        self._forward(record)


class MaterializedTable:
    """The store of a table, and the forwarder of its changes."""

    def __init__(self, context: OperatorContext, store_name: str, send_old_values: bool) -> None:
        self.store_name = store_name
        self._store: TableStore[Any, Any] = TableStore(context.state_store(store_name))
        self._forwarder = ChangeForwarder(context, send_old_values, self._store, timestamped_flush_listener(context))

    def get(self, key: Any) -> ValueAndTimestamp[Any] | None:
        """Return the value of a key and its timestamp, or None."""
        return self._store.get(key)

    def get_value(self, key: Any) -> Any:
        """Return the value of a key without its timestamp, or None."""
        return value_or_none(self._store.get(key))

    def update(self, record: Record[Any, Any], new_value: Any, old_value: Any, timestamp: int) -> None:
        """Put a value with its timestamp in milliseconds, and forward the change with the record's key and headers.

        A versioned store rejects values that are older than its history retention. Such a change is not forwarded.
        """
        code = self._store.put(record.key, new_value, timestamp)
        if code == PUT_NOT_PUT:
            return
        change = Change(new_value, old_value, code == PUT_IS_LATEST)
        self._forwarder.maybe_forward(Record(record.key, change, timestamp, record.headers))


def timestamped_flush_listener(context: OperatorContext) -> FlushListener:
    """Return a listener for the cache of a timestamped store. It forwards values without their timestamps."""

    def forward(record: Record[Any, Change[Any]]) -> None:
        change = record.value
        new = change.new_value
        timestamp = record.timestamp if new is None else new.timestamp
        values = Change(value_or_none(new), value_or_none(change.old_value), change.is_latest)
        context.forward(Record(record.key, values, timestamp, record.headers))

    return forward


def session_flush_listener(context: OperatorContext) -> FlushListener:
    """Return a listener for the cache of a session store. The timestamp of a result is the end of its session."""

    def forward(record: Record[Any, Change[Any]]) -> None:
        context.forward(Record(record.key, record.value, record.key.window.end, record.headers))

    return forward
