"""The operator that computes each value of a table with a transformer, which can read stores and the context."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Generic, NoReturn, TypeVar, cast

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.context import OperatorContext, OperatorProcessor
from pybroker.streams.operators.forwarding import MaterializedTable
from pybroker.streams.operators.table import Table, ValueGetter
from pybroker.streams.operators.table_stateless import ComputedTable
from pybroker.streams.operators.value_getters import ComputedGetter, value_or_none, with_timestamp
from pybroker.streams.processor import Cancellable, Processor, ProcessorContext, PunctuationType
from pybroker.streams.records import NO_TIMESTAMP, Change, Record, RecordContext, ValueAndTimestamp
from pybroker.streams.state.builders import StoreBuilder

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class ValueTransformer(abc.ABC, Generic[K, V, R]):
    """Computes one value of a table from the key and the value of the parent (`ValueTransformerWithKey`)."""

    def init(self, context: ProcessorContext) -> None:
        """Prepare the transformer. The context provides stores and record metadata, but forwards no records."""

    @abc.abstractmethod
    def transform(self, key: K, value: V | None) -> R | None:
        """Return the new value. The transformer receives None for a deleted key."""

    def close(self) -> None:
        """Release what `init` has acquired."""


ValueTransformerSupplier = Callable[[], ValueTransformer[Any, Any, Any]]
"""Returns a new transformer for each task. An attribute `stores()` returns builders of stores to add and to connect."""


class TableTransformValues(ComputedTable):
    """Replaces each value by the result of a transformer (`KTableTransformValues`)."""

    def __init__(
        self,
        parent: Table,
        supplier: ValueTransformerSupplier,
        queryable_name: str | None = None,
        builder: StoreBuilder | None = None,
    ) -> None:
        super().__init__(parent, queryable_name, builder)
        self._supplier = supplier

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _Transformation(self.queryable_name, self.sends_old_values, self._supplier())

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the table's store, if it has one, and those of the program's supplier."""
        own = super().stores()
        connected = getattr(self._supplier, "stores", None)
        return own if connected is None else (*own, *(connected() or ()))

    def computed_getter(self, parent: ValueGetter) -> ValueGetter:
        """Return a getter that transforms the values of the parent's getter, with a transformer of its own."""
        return _TransformGetter(parent, self._supplier())


class _Transformation(OperatorProcessor):
    """Transforms the new value of each change, and the old value if no store has it."""

    def __init__(
        self, store_name: str | None, send_old_values: bool, transformer: ValueTransformer[Any, Any, Any]
    ) -> None:
        self._store_name = store_name
        self._send_old_values = send_old_values
        self._transformer = transformer
        self._table: MaterializedTable | None = None

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._transformer.init(ForwardingDisabledContext(self.context))
        if self._store_name is not None:
            self._table = MaterializedTable(self.context, self._store_name, self._send_old_values)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        key, change = record.key, record.value
        new_value = self._transformer.transform(key, change.new_value)
        if self._table is not None:
            old_value = self._table.get_value(key) if self._send_old_values else None
            self._table.update(record, new_value, old_value, record.timestamp)
        else:
            old_value = self._transformer.transform(key, change.old_value) if self._send_old_values else None
            self.context.forward(record.with_value(Change(new_value, old_value, change.is_latest)))

    def close(self) -> None:
        self._transformer.close()


class _TransformGetter(ComputedGetter):
    """Transforms the parent's value in a record context without topic, partition and offset."""

    def __init__(self, parent: ValueGetter, transformer: ValueTransformer[Any, Any, Any]) -> None:
        super().__init__(parent)
        self._transformer = transformer

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._context = cast(OperatorContext, context)
        self._transformer.init(ForwardingDisabledContext(self._context))

    def compute(self, key: Any, value: ValueAndTimestamp[Any] | None) -> ValueAndTimestamp[Any] | None:
        timestamp = NO_TIMESTAMP if value is None else value.timestamp
        current = self._context.record_context
        self._context.set_record_context(RecordContext(timestamp, -1, -1, None))
        result = with_timestamp(self._transformer.transform(key, value_or_none(value)), timestamp)
        self._context.set_record_context(current)
        return result

    def close(self) -> None:
        super().close()
        self._transformer.close()


class ForwardingDisabledContext(ProcessorContext):
    """The context of a node, without the right to forward records."""

    def __init__(self, context: ProcessorContext) -> None:
        self._context = context
        self.application_id = context.application_id
        self.task_id = context.task_id

    def forward(self, record: Record[Any, Any], child: str | None = None) -> NoReturn:  # noqa: ARG002 - every forward is refused
        """Raise StreamsError."""
        raise StreamsError("a value transformer cannot forward records: return the new value instead")

    def state_store(self, name: str) -> Any:
        """Return a state store that is connected to the node."""
        return self._context.state_store(name)

    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback` with a timestamp in milliseconds, every `interval_ms` of the named clock."""
        return self._context.schedule(interval_ms, kind, callback)

    @property
    def record_context(self) -> RecordContext | None:
        """The context of the record that the task is processing."""
        return self._context.record_context

    @property
    def stream_time(self) -> int:
        """The largest timestamp that the task has processed, in milliseconds."""
        return self._context.stream_time

    @property
    def wall_clock_time(self) -> int:
        """The time of the machine or of the test driver, in milliseconds since the epoch."""
        return self._context.wall_clock_time

    def commit(self) -> None:
        """Request a commit after the current record."""
        self._context.commit()

    def drop(self, reason: str) -> None:
        """Count and log a record that is skipped."""
        self._context.drop(reason)
