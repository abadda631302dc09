"""Operators of grouped tables: the regrouping of changes under a new key, and aggregations with a subtractor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.forwarding import MaterializedTable
from pybroker.streams.operators.stored_table import StoredTable
from pybroker.streams.operators.table import Table, TableSupplier, ValueGetter, ValueGetterSupplier
from pybroker.streams.operators.value_getters import ComputedGetter, value_or_none
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import Change, Record, ValueAndTimestamp
from pybroker.streams.state.builders import StoreBuilder

GroupMapper = Callable[[Any, Any], tuple[Any, Any] | None]
"""Returns the key and the value to group, for a key and a value of the table; None to leave the record out."""


class TableRepartitionMap(TableSupplier):
    """Regroups a table under the key that a function returns (`KTableRepartitionMap`).

    The parent must send old values, because a change of the group removes the old value from the old group.
    """

    def __init__(self, parent: Table, mapper: GroupMapper) -> None:
        self._parent = parent
        self._mapper = mapper
        self._versioned_semantics = False

    @property
    def uses_versioned_semantics(self) -> bool:
        """Whether out-of-order changes of the parent are skipped."""
        return self._versioned_semantics

    def enable_versioned_semantics(self, enabled: bool) -> None:
        """Skip out-of-order changes. The optimiser enables this if the parent is versioned."""
        self._versioned_semantics = enabled

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _RepartitionMap(self._mapper, self._versioned_semantics)

    def view(self) -> ValueGetterSupplier:
        """Return getters that map the values of the parent. They have no stores to connect to."""
        return _RepartitionGetters(self._parent, self._mapper)

    def enable_sending_old_values(self, force_materialization: bool) -> bool:  # noqa: ARG002 - see the subclasses
        """Raise StreamsError: the DSL enables old values on the parent."""
        raise StreamsError("a regrouped table always sends old values: enable them on its parent")


class _RepartitionMap(OperatorProcessor):
    """Forwards the removal of the old value before the new value, unless both have the same new key."""

    def __init__(self, mapper: GroupMapper, versioned_semantics: bool) -> None:
        self._mapper = mapper
        self._versioned_semantics = versioned_semantics

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            raise StreamsError("a table that is grouped has a record with a null key")
        change = record.value
        if self._versioned_semantics and not change.is_latest:
            # Aggregates of a versioned table contain the latest values only.
            return
        new = self._pair(record.key, change.new_value)
        old = self._pair(record.key, change.old_value)
        if old is not None and new is not None and old[0] == new[0]:
            self._send(record, old[0], new[1], old[1])
            return
        if old is not None:
            self._send(record, old[0], None, old[1])
        if new is not None:
            self._send(record, new[0], new[1], None)

    def _pair(self, key: Any, value: Any) -> tuple[Any, Any] | None:
        """Return the new key and value, or None if either is missing."""
        pair = None if value is None else self._mapper(key, value)
        return None if pair is None or pair[0] is None or pair[1] is None else pair

    def _send(self, record: Record[Any, Change[Any]], key: Any, new_value: Any, old_value: Any) -> None:
        change = Change(new_value, old_value, record.value.is_latest)
        self.context.forward(Record(key, change, record.timestamp, record.headers))


class _RepartitionGetters(ValueGetterSupplier):
    """Supplies getters of pairs of new key and value."""

    def __init__(self, parent: Table, mapper: GroupMapper) -> None:
        self._parent = parent.value_getter_supplier()
        self._mapper = mapper

    @property
    def store_names(self) -> Sequence[str]:
        raise StreamsError("the store of a regrouped table is in another subtopology")

    def get(self) -> ValueGetter:
        return _RepartitionGetter(self._parent.get(), self._mapper)


class _RepartitionGetter(ComputedGetter):
    """Maps the parent's value to a pair of new key and value."""

    def __init__(self, parent: ValueGetter, mapper: GroupMapper) -> None:
        super().__init__(parent)
        self._mapper = mapper

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._context = context

    def compute(self, key: Any, value: ValueAndTimestamp[Any] | None) -> ValueAndTimestamp[Any] | None:
        pair = self._mapper(key, value_or_none(value))
        if pair is None:
            return None
        if value is not None:
            return ValueAndTimestamp(pair, value.timestamp)
        current = self._context.record_context
        return None if current is None else ValueAndTimestamp(pair, current.timestamp)


Combine = Callable[[Any, Change[Any], Any], Any]
"""Returns the new aggregate of a key, for a change of a value and the current aggregate."""


class _GroupedTable(StoredTable):
    """The base class of aggregations of a grouped table."""

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _GroupedUpdate(self.builder.name, self.sends_old_values, self.combine)

    def combine(self, key: Any, change: Change[Any], aggregate: Any) -> Any:
        """Return the new aggregate of a key: remove the old value, then add the new value."""
        raise NotImplementedError


class _GroupedUpdate(OperatorProcessor):
    """Updates the aggregate of a group with a change of one of its values."""

    def __init__(self, store_name: str, send_old_values: bool, combine: Combine) -> None:
        self._store_name = store_name
        self._send_old_values = send_old_values
        self._combine = combine

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table = MaterializedTable(self.context, self._store_name, self._send_old_values)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            raise StreamsError(f"a record for table {self._store_name!r} of a grouped table has a null key")
        change = record.value
        old = self._table.get(record.key)
        timestamp = record.timestamp
        if old is not None and (change.old_value is not None or change.new_value is not None):
            timestamp = max(timestamp, old.timestamp)
        old_aggregate = value_or_none(old)
        aggregate = self._combine(record.key, change, old_aggregate)
        self._table.update(record, aggregate, old_aggregate, timestamp)


class TableReduce(_GroupedTable):
    """Combines the values of a group with a reducer, and removes values with another (`KTableReduce`).

    `adder` and `subtractor` receive the aggregate and the value.
    """

    def __init__(
        self, builder: StoreBuilder, adder: Callable[[Any, Any], Any], subtractor: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__(builder)
        self._adder = adder
        self._subtractor = subtractor

    def combine(self, key: Any, change: Change[Any], aggregate: Any) -> Any:  # noqa: ARG002 - see the subclasses
        """Return the new aggregate. The first value of a group is the aggregate."""
        if change.old_value is not None and aggregate is not None:
            aggregate = self._subtractor(aggregate, change.old_value)
        if change.new_value is None:
            return aggregate
        return change.new_value if aggregate is None else self._adder(aggregate, change.new_value)


class TableAggregate(_GroupedTable):
    """Adds the values of a group to an aggregate, and removes values from the aggregate (`KTableAggregate`).

    `adder` and `subtractor` receive the key, the value and the aggregate.
    """

    def __init__(
        self,
        builder: StoreBuilder,
        initializer: Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
    ) -> None:
        super().__init__(builder)
        self._initializer = initializer
        self._adder = adder
        self._subtractor = subtractor

    def combine(self, key: Any, change: Change[Any], aggregate: Any) -> Any:
        """Return the new aggregate. The initializer returns the aggregate of an empty group."""
        if change.old_value is not None and aggregate is not None:
            aggregate = self._subtractor(key, change.old_value, aggregate)
        if change.new_value is None:
            return aggregate
        return self._adder(key, change.new_value, self._initializer() if aggregate is None else aggregate)
