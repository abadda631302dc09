"""Joins of a stream with a table or a global table, by a search for each record (`KStreamKTableJoinProcessor`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pybroker.streams.errors import TopologyError
from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.default_serdes import default_serdes
from pybroker.streams.operators.table import OperatorSupplier, ValueGetter, ValueGetterSupplier
from pybroker.streams.operators.value_getters import value_or_none
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import NO_TIMESTAMP, Record

if TYPE_CHECKING:
    from pybroker.streams.state.buffers import Eviction
    from pybroker.streams.state.builders import StoreBuilder
    from pybroker.streams.state.join_buffer import JoinBuffer

TableJoiner = Callable[[Any, Any, Any], Any]
"""Returns the result of a join from the stream's key, the stream's value, and the table's value or None."""
MappedKeyJoiner = Callable[[Any, Any, Any, Any], Any]
"""As TableJoiner, with the global table's key after the stream's key."""


class StreamTableJoin(OperatorSupplier):
    """Joins each record of a stream with the value that a table has for its key (`KStreamKTableJoin`)."""

    def __init__(
        self,
        value_getter_supplier: ValueGetterSupplier,
        joiner: TableJoiner,
        left: bool,
        grace_ms: int | None = None,
        buffer_builder: StoreBuilder | None = None,
    ) -> None:
        """Define the join.

        Args:
            value_getter_supplier: reads the table.
            joiner: makes the result.
            left: whether a record without a match has a result.
            grace_ms: how long a record waits in the buffer for earlier versions of the table, in milliseconds of
                stream time; None to join at once.
            buffer_builder: the buffer; needed with `grace_ms`.
        """
        self.value_getter_supplier = value_getter_supplier
        self.joiner = joiner
        self.left = left
        self.grace_ms = grace_ms
        self.buffer_builder = buffer_builder

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        buffer_name = self.buffer_builder.name if self.grace_ms is not None and self.buffer_builder else None
        getter = self.value_getter_supplier.get()
        return _StreamTableJoinProcessor(getter, lambda key, _: key, self._join, self.left, buffer_name)

    def _join(self, key: Any, _: Any, value: Any, table_value: Any) -> Any:
        return self.joiner(key, value, table_value)

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the buffer, if the join has one."""
        return () if self.buffer_builder is None else (self.buffer_builder,)


class StreamGlobalTableJoin(OperatorSupplier):
    """Joins each record of a stream with a value of a global table (`KStreamGlobalKTableJoin`)."""

    def __init__(
        self,
        value_getter_supplier: ValueGetterSupplier,
        joiner: TableJoiner,
        key_selector: Callable[[Any, Any], Any],
        left: bool,
    ) -> None:
        """Define the join.

        Args:
            value_getter_supplier: reads the global table.
            joiner: makes the result.
            key_selector: returns the global table's key from the stream's key and value.
            left: whether a record without a match has a result.
        """
        self.value_getter_supplier = value_getter_supplier
        self.joiner: MappedKeyJoiner = lambda key, _, value, table_value: joiner(key, value, table_value)
        self.key_selector = key_selector
        self.left = left

    @classmethod
    def with_mapped_key(
        cls,
        value_getter_supplier: ValueGetterSupplier,
        joiner: MappedKeyJoiner,
        key_selector: Callable[[Any, Any], Any],
        left: bool,
    ) -> StreamGlobalTableJoin:
        """Return a join whose joiner takes both keys (`ValueJoinerWithStreamAndMappedKey`)."""
        join = cls(value_getter_supplier, lambda *_: None, key_selector, left)
        join.joiner = joiner
        return join

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        getter = self.value_getter_supplier.get()
        return _StreamTableJoinProcessor(getter, self.key_selector, self.joiner, self.left, None)


class _StreamTableJoinProcessor(OperatorProcessor):
    def __init__(
        self,
        getter: ValueGetter,
        key_selector: Callable[[Any, Any], Any],
        joiner: MappedKeyJoiner,
        left: bool,
        buffer_name: str | None,
    ) -> None:
        self._getter = getter
        self._key_selector = key_selector
        self._joiner = joiner
        self._left = left
        self._buffer_name = buffer_name
        self._buffer: JoinBuffer[Any, Any] | None = None
        self._observed_stream_time = NO_TIMESTAMP

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._getter.init(context)
        if self._buffer_name is None:
            return
        if not self._getter.is_versioned:
            raise TopologyError(
                "a join with a grace period needs a versioned table: the table's store is not versioned"
            )
        self._buffer = context.state_store(self._buffer_name)
        defaults = default_serdes(context)
        self._buffer.set_serdes_if_none(defaults.key, defaults.value)

    def kept_fields(self) -> Iterable[tuple[object, str]]:
        """Return the observed stream time."""
        return ((self, "_observed_stream_time"),)

    def process(self, record: Record[Any, Any]) -> None:
        self._observed_stream_time = max(self._observed_stream_time, record.timestamp)
        if self._drops(record):
            return
        if self._buffer is None:
            self._join(record)
            return
        record_context = self.context.record_context
        assert record_context is not None
        if self._buffer.put(self._observed_stream_time, record, record_context):
            self._buffer.evict_while(lambda: True, self._emit)
        else:
            # The buffer rejects a record that is later than the grace period. It joins at once.
            self._join(record)

    def _emit(self, evicted: Eviction[Any, Any]) -> None:
        """Join a record whose grace period has passed, in the context that the record arrived with."""
        previous = self.context.record_context
        arrival = evicted.record_context
        try:
            self.context.set_record_context(arrival)
            self._join(Record(evicted.key, evicted.value, arrival.timestamp, arrival.headers))
        finally:
            self.context.set_record_context(previous)

    def _join(self, record: Record[Any, Any]) -> None:
        table_key = self._key_selector(record.key, record.value)
        table_value = None if table_key is None else self._table_value(table_key, record.timestamp)
        if self._left or table_value is not None:
            value = self._joiner(record.key, table_key, record.value, table_value)
            self.context.forward(record.with_value(value))

    def _table_value(self, key: Any, timestamp: int) -> Any:
        found = self._getter.get_as_of(key, timestamp) if self._getter.is_versioned else self._getter.get(key)
        return value_or_none(found)

    def _drops(self, record: Record[Any, Any]) -> bool:
        """Drop a record that cannot join, and return whether it is dropped."""
        table_key = self._key_selector(record.key, record.value)
        if record.value is not None and (self._left or table_key is not None):
            return False
        self.context.drop("null join key or value")
        return True

    def close(self) -> None:
        self._getter.close()
