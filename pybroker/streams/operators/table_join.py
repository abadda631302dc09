"""Joins of two tables by equal keys: inner, left and outer joins, and the merge of both sides (`KTableKTableJoin`).

A join has two operators, one for the changes of each table, and one operator that merges their results.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.forwarding import ChangeForwarder, MaterializedTable
from pybroker.streams.operators.table import Table, TableSupplier, ValueGetter, ValueGetterSupplier
from pybroker.streams.operators.value_getters import StoreGetters, TableStoreGetter, value_or_none, with_timestamp
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import NO_TIMESTAMP, Change, Record, ValueAndTimestamp

if TYPE_CHECKING:
    from pybroker.streams.state.builders import StoreBuilder

ValueJoiner = Callable[[Any, Any], Any]
"""Returns the result of a join from the value of this table and the value of the other table."""


class TableTableJoin(TableSupplier):
    """Joins the changes of one table, `this`, with the current values of another table.

    The joiner takes the value of `this` before the value of `other`. The operator for the right-hand table needs a
    joiner with its arguments exchanged: see `reverse_value_joiner`.
    """

    needs_this: ClassVar[bool] = False
    """Whether there is no result without a value of this table."""
    needs_other: ClassVar[bool] = False
    """Whether there is no result without a value of the other table."""

    def __init__(self, this: Table, other: Table, joiner: ValueJoiner) -> None:
        self.this = this
        self.other = other
        self.joiner = joiner
        self.this_getters = this.value_getter_supplier()
        self.other_getters = other.value_getter_supplier()
        self.sends_old_values = False
        self.versioned_semantics = False

    @abc.abstractmethod
    def join_change(self, change: Change[Any], other: Any) -> Change[Any] | None:
        """Return the change of the result, or None if the result does not change.

        Args:
            change: the change of this table.
            other: the value of the other table; None if it has none.
        """

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _TableJoinProcessor(self, self.other_getters.get())

    def view(self) -> ValueGetterSupplier:
        """Return getters that join the current values of both tables. Their result is not versioned (KIP-914)."""
        return _JoinedGetters(self)

    def enable_sending_old_values(self, force_materialization: bool) -> bool:  # noqa: ARG002 - always materialized
        """Make changes carry the old value. Both tables get a store."""
        self.this.enable_sending_old_values(True)
        self.other.enable_sending_old_values(True)
        self.sends_old_values = True
        return True

    def enable_versioned_semantics(self, enabled: bool) -> None:
        """Drop changes of a versioned table that are not its latest, if enabled (KIP-914)."""
        self.versioned_semantics = enabled


class InnerTableJoin(TableTableJoin):
    """Has a result where both tables have a value (`KTableKTableInnerJoin`)."""

    needs_this = True
    needs_other = True

    def join_change(self, change: Change[Any], other: Any) -> Change[Any] | None:
        """Return no change if the other table has no value."""
        if other is None:
            return None
        return _joined_present(self, change, other)


class LeftTableJoin(TableTableJoin):
    """Has a result where this table has a value (`KTableKTableLeftJoin`)."""

    needs_this = True

    def join_change(self, change: Change[Any], other: Any) -> Change[Any] | None:
        """Return no change if neither table has or had a value."""
        if other is None and change.new_value is None and change.old_value is None:
            return None
        return _joined_present(self, change, other)


class RightTableJoin(TableTableJoin):
    """Has a result where the other table has a value (`KTableKTableRightJoin`)."""

    needs_other = True

    def join_change(self, change: Change[Any], other: Any) -> Change[Any] | None:
        """Return no change if the other table has no value."""
        if other is None:
            return None
        old = self.joiner(change.old_value, other) if self.sends_old_values else None
        return Change(self.joiner(change.new_value, other), old, change.is_latest)


class OuterTableJoin(TableTableJoin):
    """Has a result where one of the tables has a value (`KTableKTableOuterJoin`)."""

    def join_change(self, change: Change[Any], other: Any) -> Change[Any] | None:
        """Return no change if neither table has or had a value."""
        if other is None:
            if change.new_value is None and change.old_value is None:
                return None
            return _joined_present(self, change, other)
        old = self.joiner(change.old_value, other) if self.sends_old_values else None
        return Change(self.joiner(change.new_value, other), old, change.is_latest)


def reverse_value_joiner(joiner: ValueJoiner) -> ValueJoiner:
    """Return a joiner that takes the value of the right-hand table first."""
    return lambda right, left: joiner(left, right)


def _joined_present(join: TableTableJoin, change: Change[Any], other: Any) -> Change[Any]:
    """Return the change of the result, which has a value only where this table has one."""
    new = None if change.new_value is None else join.joiner(change.new_value, other)
    keeps_old = join.sends_old_values and change.old_value is not None
    return Change(new, join.joiner(change.old_value, other) if keeps_old else None, change.is_latest)


class _TableJoinProcessor(OperatorProcessor):
    def __init__(self, join: TableTableJoin, getter: ValueGetter) -> None:
        self._join = join
        self._getter = getter

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._getter.init(context)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            self.context.drop("null key")
            return
        if self._join.versioned_semantics and not record.value.is_latest:
            self.context.drop("out-of-order record of a versioned table")
            return
        found = self._getter.get(record.key)
        other = value_or_none(found)
        change = self._join.join_change(record.value, other)
        if change is None:
            return
        other_timestamp = NO_TIMESTAMP if found is None or other is None else found.timestamp
        self.context.forward(record.with_value(change).with_timestamp(max(record.timestamp, other_timestamp)))

    def close(self) -> None:
        self._getter.close()


class _JoinedGetters(ValueGetterSupplier):
    """Supplies getters of the result of a join."""

    def __init__(self, join: TableTableJoin) -> None:
        self._join = join

    @property
    def store_names(self) -> Sequence[str]:
        """The stores of both tables."""
        return _union(self._join.this_getters, self._join.other_getters)

    def get(self) -> ValueGetter:
        """Return a new getter."""
        return _JoinedGetter(self._join)


class _JoinedGetter(ValueGetter):
    """Joins the current values of both tables."""

    def __init__(self, join: TableTableJoin) -> None:
        self._join = join
        self._this = join.this_getters.get()
        self._other = join.other_getters.get()

    def init(self, context: ProcessorContext) -> None:
        """Open the stores of both tables."""
        self._this.init(context)
        self._other.init(context)

    def get(self, key: Any) -> ValueAndTimestamp[Any] | None:
        """Return the joined value, with the larger timestamp of both values."""
        this, other = self._values(key)
        if (this is None and (other is None or self._join.needs_this)) or (other is None and self._join.needs_other):
            return None
        timestamps = [value.timestamp for value in (this, other) if value is not None]
        return with_timestamp(self._join.joiner(value_or_none(this), value_or_none(other)), max(timestamps))

    def _values(self, key: Any) -> tuple[ValueAndTimestamp[Any] | None, ValueAndTimestamp[Any] | None]:
        """Return the values of both tables. A table is not read if the other one decides that there is no result.

        Each read changes the order of eviction of a store's cache.
        """
        if self._join.needs_other and not self._join.needs_this:
            other = self._other.get(key)
            return (None if other is None else self._this.get(key)), other
        this = self._this.get(key)
        return this, (None if this is None and self._join.needs_this else self._other.get(key))

    def close(self) -> None:
        """Close the getters of both tables."""
        self._this.close()
        self._other.close()


def _union(first: ValueGetterSupplier, second: ValueGetterSupplier) -> tuple[str, ...]:
    """Return the store names of both suppliers without duplicates."""
    return tuple(dict.fromkeys((*first.store_names, *second.store_names)))


class TableJoinMerger(TableSupplier):
    """Merges the results of both sides of a join into one table (`KTableKTableJoinMerger`)."""

    def __init__(
        self,
        left_side: TableSupplier,
        right_side: TableSupplier,
        queryable_name: str | None = None,
        builder: StoreBuilder | None = None,
    ) -> None:
        """Define the merge.

        Args:
            left_side: the operator for the changes of the left-hand table.
            right_side: the operator for the changes of the right-hand table.
            queryable_name: the name of the store of the result; None to compute the result on demand.
            builder: the store of the result.
        """
        self.left_side = left_side
        self.right_side = right_side
        self.queryable_name = queryable_name
        self.builder = builder
        self.sends_old_values = False

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        if self.queryable_name is None:
            return _MergeProcessor(self.sends_old_values)
        return _MaterializedMergeProcessor(self.queryable_name, self.sends_old_values)

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the store of the result, if it has one."""
        return () if self.builder is None else (self.builder,)

    def view(self) -> ValueGetterSupplier:
        """Return getters of the store of the result, or getters that join both tables."""
        if self.queryable_name is not None:
            return StoreGetters(self.queryable_name, TableStoreGetter)
        return _MergedGetters(self.left_side.view(), self.right_side.view())

    def enable_sending_old_values(self, force_materialization: bool) -> bool:  # noqa: ARG002 - always materialized
        """Make changes carry the old value. Both tables get a store."""
        self.left_side.enable_sending_old_values(True)
        self.right_side.enable_sending_old_values(True)
        self.sends_old_values = True
        return True


class _MergedGetters(ValueGetterSupplier):
    """Supplies the getters of the left side, and names the stores of both sides."""

    def __init__(self, left: ValueGetterSupplier, right: ValueGetterSupplier) -> None:
        self._left = left
        self._right = right

    @property
    def store_names(self) -> Sequence[str]:
        """The stores of both sides."""
        return _union(self._left, self._right)

    def get(self) -> ValueGetter:
        """Return a new getter."""
        return self._left.get()


class _MergeProcessor(OperatorProcessor):
    """Forwards the changes of both sides."""

    def __init__(self, send_old_values: bool) -> None:
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._forwarder = ChangeForwarder(self.context, self._send_old_values)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        self._forwarder.maybe_forward(record)


class _MaterializedMergeProcessor(OperatorProcessor):
    """Writes the changes of both sides to the store of the result."""

    def __init__(self, store_name: str, send_old_values: bool) -> None:
        self._store_name = store_name
        self._send_old_values = send_old_values

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table = MaterializedTable(self.context, self._store_name, self._send_old_values)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        self._table.update(record, record.value.new_value, record.value.old_value, record.timestamp)
