"""The operator that reads a topic as a table."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.forwarding import MaterializedTable
from pybroker.streams.operators.table import TableSupplier, ValueGetterSupplier
from pybroker.streams.operators.value_getters import StoreGetters, TableStoreGetter, value_or_none
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import Change, Record
from pybroker.streams.state.builders import StoreBuilder

log = logging.getLogger("pybroker.streams")


class TableSource(TableSupplier):
    """Converts records of a topic to changes of a table (`KTableSource`).

    The table has a store only if a program queries it, or if a downstream operator needs its values.
    """

    def __init__(self, builder: StoreBuilder, queryable_name: str | None) -> None:
        self.builder = builder
        self.queryable_name = queryable_name
        """The name of the store; None as long as the table has no store."""
        self.sends_old_values = False

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        if self.queryable_name is None:
            return _UnmaterializedSource()
        return _MaterializedSource(self.queryable_name, self.sends_old_values)

    @property
    def is_materialized(self) -> bool:
        """Whether the table has a store."""
        return self.queryable_name is not None

    def materialize(self) -> None:
        """Create a store for the table."""
        self.queryable_name = self.builder.name

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the store, if the table has one."""
        return (self.builder,) if self.is_materialized else ()

    def view(self) -> ValueGetterSupplier:
        """Return getters of the store. The table is materialized for them."""
        self.materialize()
        return StoreGetters(self.builder.name, TableStoreGetter)

    def enable_sending_old_values(self, force_materialization: bool) -> bool:
        """Make changes carry the old value. Only a table with a store has old values."""
        if not force_materialization and not self.is_materialized:
            return False
        self.sends_old_values = True
        self.materialize()
        return True


class _UnmaterializedSource(OperatorProcessor):
    """Forwards each record as a change without an old value."""

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.drop("null key")
            return
        self.context.forward(record.with_value(Change(record.value, None)))


class _MaterializedSource(OperatorProcessor):
    """Puts each record in the store, also if its timestamp is smaller than that of the value before.

    A versioned store keeps the order by timestamp itself.
    """

    def __init__(self, store_name: str, send_old_values: bool) -> None:
        self._store_name = store_name
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table = MaterializedTable(self.context, self._store_name, self._send_old_values)

    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.drop("null key")
            return
        old = self._table.get(record.key)
        if old is not None and record.timestamp < old.timestamp:
            log.warning(
                "Out-of-order update of table %s: timestamp %d is smaller than %d, the timestamp of the current value. "
                "Position: %s",
                self._store_name,
                record.timestamp,
                old.timestamp,
                self.context.record_metadata,
            )
        self._table.update(record, record.value, value_or_none(old), record.timestamp)
