"""Operators that compute each value of a table from the same key's value of the parent: filter and map values."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.forwarding import MaterializedTable
from pybroker.streams.operators.stateless import PassThroughProcessor
from pybroker.streams.operators.table import Table, TableSupplier, ValueGetter, ValueGetterSupplier
from pybroker.streams.operators.value_getters import (
    ComputedGetter,
    ParentGetters,
    StoreGetters,
    TableStoreGetter,
    with_timestamp,
)
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import Change, Record, ValueAndTimestamp
from pybroker.streams.state.builders import StoreBuilder


class ComputedTable(TableSupplier):
    """The base class of tables that are computed from a parent, with or without a store of their own."""

    def __init__(self, parent: Table, queryable_name: str | None, builder: StoreBuilder | None) -> None:
        self.parent = parent
        self.queryable_name = queryable_name
        self.builder = builder
        self.sends_old_values = False

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the store, if the table has one."""
        return () if self.builder is None else (self.builder,)

    def view(self) -> ValueGetterSupplier:
        """Return getters of the store. Without a store they compute values from the parent's."""
        if self.queryable_name is not None:
            return StoreGetters(self.queryable_name, TableStoreGetter)
        return ParentGetters(self.parent, self.computed_getter)

    @abc.abstractmethod
    def computed_getter(self, parent: ValueGetter) -> ValueGetter:
        """Return a getter that computes values from those of the parent's getter."""

    def enable_sending_old_values(self, force_materialization: bool) -> bool:
        """Make changes carry the old value, from the table's own store or from the parent's changes."""
        if self.queryable_name is not None or self.parent.enable_sending_old_values(force_materialization):
            self.sends_old_values = True
        return self.sends_old_values


class _Computation(OperatorProcessor):
    """Applies a function of key and value to the new and the old value of each change."""

    def __init__(self, table: ComputedTable, compute: Callable[[Any, Any], Any], skips_unchanged: bool = False) -> None:
        self._store_name = table.queryable_name
        self._sends_old_values = table.sends_old_values
        self._compute = compute
        self._skips_unchanged = skips_unchanged
        self._table: MaterializedTable | None = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        if self._store_name is not None:
            self._table = MaterializedTable(self.context, self._store_name, self._sends_old_values)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        key, change = record.key, record.value
        new_value = self._compute(key, change.new_value)
        old_value = self._old_value(key, change)
        if self._skips_unchanged and old_value is None and new_value is None:
            return
        if self._table is not None:
            self._table.update(record, new_value, old_value, record.timestamp)
        else:
            self.context.forward(record.with_value(Change(new_value, old_value, change.is_latest)))

    def _old_value(self, key: Any, change: Change[Any]) -> Any:
        if not self._sends_old_values:
            return None
        if self._table is not None:
            return self._table.get_value(key)
        return self._compute(key, change.old_value)


class TableFilter(ComputedTable):
    """Keeps the values that satisfy a predicate of key and value, or those that do not (`KTableFilter`).

    A key whose value is not kept gets a tombstone. The tombstone is not forwarded if the key had no value before.
    """

    def __init__(
        self,
        parent: Table,
        predicate: Callable[[Any, Any], bool],
        filter_not: bool,
        queryable_name: str | None = None,
        builder: StoreBuilder | None = None,
    ) -> None:
        super().__init__(parent, queryable_name, builder)
        self._predicate = predicate
        self._filter_not = filter_not
        self._versioned_semantics = False
        # A parent with a store has old values at no cost. They prevent unnecessary tombstones.
        self.sends_old_values = parent.enable_sending_old_values(False)

    @property
    def uses_versioned_semantics(self) -> bool:
        """Whether every tombstone is forwarded, because a later operator can need its timestamp."""
        return self._versioned_semantics

    def enable_versioned_semantics(self, enabled: bool) -> None:
        """Forward all tombstones. The optimiser enables this if the parent is versioned."""
        self._versioned_semantics = enabled

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        skips = self.sends_old_values and not self._versioned_semantics
        return _Computation(self, self._value, skips)

    def computed_getter(self, parent: ValueGetter) -> ValueGetter:
        """Return a getter that filters the values of the parent's getter."""
        return _FilterGetter(parent, self._keeps)

    def _keeps(self, key: Any, value: Any) -> bool:
        return bool(self._predicate(key, value)) != self._filter_not

    def _value(self, key: Any, value: Any) -> Any:
        return value if value is not None and self._keeps(key, value) else None


class _FilterGetter(ComputedGetter):
    """Returns the parent's value if the filter keeps it."""

    def __init__(self, parent: ValueGetter, keeps: Callable[[Any, Any], bool]) -> None:
        super().__init__(parent)
        self._keeps = keeps

    def compute(self, key: Any, value: ValueAndTimestamp[Any] | None) -> ValueAndTimestamp[Any] | None:
        return value if value is not None and self._keeps(key, value.value) else None


class TableMapValues(ComputedTable):
    """Replaces each value by the result of a function of key and value. None stays None (`KTableMapValues`)."""

    def __init__(
        self,
        parent: Table,
        mapper: Callable[[Any, Any], Any],
        queryable_name: str | None = None,
        builder: StoreBuilder | None = None,
    ) -> None:
        super().__init__(parent, queryable_name, builder)
        self._mapper = mapper

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _Computation(self, self._value)

    def computed_getter(self, parent: ValueGetter) -> ValueGetter:
        """Return a getter that maps the values of the parent's getter."""
        return _MapValuesGetter(parent, self._mapper)

    def _value(self, key: Any, value: Any) -> Any:
        return None if value is None else self._mapper(key, value)


class _MapValuesGetter(ComputedGetter):
    """Maps the parent's value and keeps its timestamp."""

    def __init__(self, parent: ValueGetter, mapper: Callable[[Any, Any], Any]) -> None:
        super().__init__(parent)
        self._mapper = mapper

    def compute(self, key: Any, value: ValueAndTimestamp[Any] | None) -> ValueAndTimestamp[Any] | None:
        return None if value is None else with_timestamp(self._mapper(key, value.value), value.timestamp)


class TablePassThrough(TableSupplier):
    """Forwards the changes of several aggregations that share one store, as cogrouping does (`KTablePassThrough`)."""

    def __init__(self, parents: Sequence[TableSupplier], store_name: str) -> None:
        self._parents = tuple(parents)
        self._store_name = store_name

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return PassThroughProcessor()

    def view(self) -> ValueGetterSupplier:
        """Return getters of the shared store."""
        return StoreGetters(self._store_name, TableStoreGetter)

    def enable_sending_old_values(self, force_materialization: bool) -> bool:
        """Make changes of all parents carry the old value. Aggregations always have a store."""
        for parent in self._parents:
            parent.enable_sending_old_values(force_materialization)
        return True
