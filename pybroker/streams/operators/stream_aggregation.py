"""Aggregations of grouped streams without windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.forwarding import MaterializedTable
from pybroker.streams.operators.stored_table import StoredTable
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import Record
from pybroker.streams.state.builders import StoreBuilder

Add = Callable[[Any, Any, Any], Any]
"""Returns the new aggregate of a key, a value and the aggregate before."""


class StreamAggregate(StoredTable):
    """Adds each value of a key to an aggregate (`KStreamAggregate`).

    `aggregator` receives the key, the value and the aggregate. The first change of a key has the result of
    `initializer` as its old value.
    """

    def __init__(
        self, builder: StoreBuilder, initializer: Callable[[], Any], aggregator: Callable[[Any, Any, Any], Any]
    ) -> None:
        super().__init__(builder)
        self._initializer = initializer
        self._aggregator = aggregator

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _AggregateProcessor(self, self._initializer, self._aggregator)


class StreamReduce(StoredTable):
    """Combines the values of a key with a reducer, which receives the aggregate and the value (`KStreamReduce`)."""

    def __init__(self, builder: StoreBuilder, reducer: Callable[[Any, Any], Any]) -> None:
        super().__init__(builder)
        self._reducer = reducer

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _ReduceProcessor(self, self._reducer)


class _StreamTableProcessor(OperatorProcessor):
    """Opens the store, and drops records without a key or a value."""

    def __init__(self, table: StoredTable) -> None:
        self._store_name = table.builder.name
        self._send_old_values = table.sends_old_values

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table = MaterializedTable(self.context, self._store_name, self._send_old_values)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None or record.value is None:
            self.context.drop("null key or value")
            return
        self._update(record)

    def _update(self, record: Record[Any, Any]) -> None:
        raise NotImplementedError


class _AggregateProcessor(_StreamTableProcessor):
    """Updates the aggregate of a key."""

    def __init__(self, table: StoredTable, initializer: Callable[[], Any], aggregator: Add) -> None:
        super().__init__(table)
        self._initializer = initializer
        self._aggregator = aggregator

    def _update(self, record: Record[Any, Any]) -> None:
        old = self._table.get(record.key)
        if old is None:
            old_value, timestamp = self._initializer(), record.timestamp
        else:
            old_value, timestamp = old.value, max(record.timestamp, old.timestamp)
        new_value = self._aggregator(record.key, record.value, old_value)
        self._table.update(record, new_value, old_value, timestamp)


class _ReduceProcessor(_StreamTableProcessor):
    """Updates the reduced value of a key. The first value is the aggregate."""

    def __init__(self, table: StoredTable, reducer: Callable[[Any, Any], Any]) -> None:
        super().__init__(table)
        self._reducer = reducer

    def _update(self, record: Record[Any, Any]) -> None:
        old = self._table.get(record.key)
        if old is None:
            self._table.update(record, record.value, None, record.timestamp)
            return
        new_value = self._reducer(old.value, record.value)
        self._table.update(record, new_value, old.value, max(record.timestamp, old.timestamp))
