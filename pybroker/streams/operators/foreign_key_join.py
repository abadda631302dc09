"""Joins of a table with another table by a foreign key (KIP-213).

`SubscriptionSend` runs where the left-hand table is, and sends subscriptions to the foreign key's partition. There
`SubscriptionReceive` stores them, `SubscriptionJoin` and `ForeignTableJoin` send responses. `ResponseJoin` runs where
the left-hand table is, and makes the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.operators.foreign_key_serdes import CombinedKeySchema, ForeignKeySerdes
from pybroker.streams.operators.foreign_key_values import (
    DELETIONS,
    CombinedKey,
    Instruction,
    SubscriptionResponseWrapper,
    SubscriptionWrapper,
)
from pybroker.streams.operators.murmur3 import hash128
from pybroker.streams.operators.table import OperatorSupplier, ValueGetter, ValueGetterSupplier
from pybroker.streams.operators.value_getters import value_or_none
from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import Change, Record, ValueAndTimestamp
from pybroker.streams.serdes import BYTES

if TYPE_CHECKING:
    from pybroker.streams.state.builders import StoreBuilder
    from pybroker.streams.state.key_value import TimestampedKeyValueStore

ForeignKeyExtractor = Callable[[Any, Any], Any]
"""Returns the foreign key, or None, from the left-hand key and value."""
ValueJoiner = Callable[[Any, Any], Any]
"""Returns the result from the left-hand value and the foreign value, which is None without a match of a left join."""


class SubscriptionSend(OperatorSupplier):
    """Sends a subscription for each change of the left-hand table (`SubscriptionSendProcessorSupplier`).

    A record goes to the subscription topic: its key is the foreign key, its value is a SubscriptionWrapper.
    """

    def __init__(self, foreign_key_extractor: ForeignKeyExtractor, serdes: ForeignKeySerdes, left: bool) -> None:
        """Define the sender.

        Args:
            foreign_key_extractor: returns the foreign key of a left-hand record.
            serdes: the serdes of the join.
            left: whether a left-hand record without a match has a result.
        """
        self.foreign_key_extractor = foreign_key_extractor
        self.serdes = serdes
        self.left = left
        self.versioned_semantics = False

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _SendProcessor(self)

    def enable_versioned_semantics(self, enabled: bool) -> None:
        """Drop changes of a versioned table that are not its latest, if enabled (KIP-914)."""
        self.versioned_semantics = enabled


class _SendProcessor(OperatorProcessor):
    def __init__(self, supplier: SubscriptionSend) -> None:
        self._supplier = supplier

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._supplier.serdes.use_defaults(context)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if self._supplier.versioned_semantics and not record.value.is_latest:
            self.context.drop("out-of-order record of a versioned table")
            return
        pairs = self._left_instructions(record) if self._supplier.left else self._inner_instructions(record)
        if not pairs:
            return
        metadata = self.context.record_metadata
        if metadata is None:
            raise StreamsError("a foreign-key join needs the partition of its input record: the record has none")
        new_value = record.value.new_value
        value_hash = None if new_value is None else hash128(self._supplier.serdes.value.to_bytes(new_value) or b"")
        for foreign_key, instruction in pairs:
            subscription = SubscriptionWrapper(value_hash, instruction, record.key, metadata.partition)
            self.context.forward(record.with_key(foreign_key).with_value(subscription))

    def _foreign_key(self, key: Any, value: Any) -> Any:
        return None if value is None else self._supplier.foreign_key_extractor(key, value)

    def _left_instructions(self, record: Record[Any, Change[Any]]) -> list[tuple[Any, Instruction]]:
        """Return the foreign keys and instructions of a left join. Every change needs a response."""
        change = record.value
        if change.old_value is None and change.new_value is None:
            return []
        old_key = self._foreign_key(record.key, change.old_value)
        new_key = self._foreign_key(record.key, change.new_value)
        pairs = []
        if old_key is not None and self._differ(new_key, old_key):
            # The new subscription goes to another partition, and returns the response.
            pairs.append((old_key, Instruction.DELETE_KEY_NO_PROPAGATE))
        # A subscription without a foreign key is not stored. Its response has no value.
        pairs.append((new_key, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE))
        return pairs

    def _inner_instructions(self, record: Record[Any, Change[Any]]) -> list[tuple[Any, Instruction]]:
        """Return the foreign keys and instructions of an inner join."""
        change = record.value
        old_key = self._foreign_key(record.key, change.old_value)
        new_key = self._foreign_key(record.key, change.new_value)
        if new_key is None:
            if change.new_value is not None:
                self.context.drop("null foreign key")
            return [] if old_key is None else [(old_key, Instruction.DELETE_KEY_AND_PROPAGATE)]
        if old_key is not None and self._differ(new_key, old_key):
            # The old foreign key may have had a match: without a new match the result must be deleted.
            return [
                (old_key, Instruction.DELETE_KEY_NO_PROPAGATE),
                (new_key, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE),
            ]
        return [(new_key, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)]

    def _differ(self, new_key: Any, old_key: Any) -> bool:
        serde = self._supplier.serdes.foreign_key
        return serde.to_bytes(new_key) != serde.to_bytes(old_key)


class SubscriptionReceive(OperatorSupplier):
    """Stores and deletes subscriptions (`SubscriptionReceiveProcessorSupplier`).

    The result has a CombinedKey, and a Change of subscriptions with timestamps.
    """

    def __init__(self, builder: StoreBuilder, key_schema: CombinedKeySchema) -> None:
        """Define the receiver.

        Args:
            builder: the subscription store, with keys of bytes and values of SubscriptionWrapper.
            key_schema: makes the keys of the store.
        """
        self.builder = builder
        self.key_schema = key_schema

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _ReceiveProcessor(self)

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the subscription store."""
        return (self.builder,)


class _ReceiveProcessor(OperatorProcessor):
    def __init__(self, supplier: SubscriptionReceive) -> None:
        self._supplier = supplier

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._supplier.key_schema.serdes.use_defaults(context)
        self._store: TimestampedKeyValueStore[bytes, SubscriptionWrapper]
        self._store = context.state_store(self._supplier.builder.name)

    def process(self, record: Record[Any, SubscriptionWrapper]) -> None:
        subscription = record.value
        if record.key is None and subscription.instruction != Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE:
            self.context.drop("null foreign key")
            return
        change = Change(ValueAndTimestamp(subscription, record.timestamp), self._store_subscription(record))
        self.context.forward(record.with_key(CombinedKey(record.key, subscription.primary_key)).with_value(change))

    def _store_subscription(
        self, record: Record[Any, SubscriptionWrapper]
    ) -> ValueAndTimestamp[SubscriptionWrapper] | None:
        """Store or delete a subscription, and return the previous one."""
        if record.key is None:
            return None
        subscription = record.value
        key = self._supplier.key_schema.to_bytes(record.key, subscription.primary_key)
        previous = self._store.get(key)
        if subscription.instruction in DELETIONS:
            self._store.delete(key)
        else:
            self._store.put(key, ValueAndTimestamp(subscription, record.timestamp))
        return previous


class SubscriptionJoin(OperatorSupplier):
    """Sends the response to each subscription (`SubscriptionJoinProcessorSupplier`).

    A record goes to the response topic: its key is the primary key, its value is a SubscriptionResponseWrapper.
    """

    def __init__(self, foreign_getter_supplier: ValueGetterSupplier, serdes: ForeignKeySerdes) -> None:
        """Define the join.

        Args:
            foreign_getter_supplier: reads the right-hand table.
            serdes: the serdes of the join.
        """
        self.foreign_getter_supplier = foreign_getter_supplier
        self.serdes = serdes

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _SubscriptionJoinProcessor(self.foreign_getter_supplier.get(), self.serdes)


class _SubscriptionJoinProcessor(OperatorProcessor):
    def __init__(self, getter: ValueGetter, serdes: ForeignKeySerdes) -> None:
        self._getter = getter
        self._serdes = serdes

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._serdes.use_defaults(context)
        self._getter.init(context)

    def process(self, record: Record[CombinedKey, Change[ValueAndTimestamp[SubscriptionWrapper]]]) -> None:
        stored = record.value.new_value
        assert stored is not None
        foreign_key, subscription = record.key.foreign_key, stored.value
        found = None if foreign_key is None else self._getter.get(foreign_key)
        timestamp = stored.timestamp if found is None else max(stored.timestamp, found.timestamp)
        if subscription.instruction == Instruction.DELETE_KEY_NO_PROPAGATE:
            return
        if subscription.instruction == Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE and found is None:
            return
        deleted = subscription.instruction == Instruction.DELETE_KEY_AND_PROPAGATE
        response = SubscriptionResponseWrapper(
            subscription.hash, None if deleted else value_or_none(found), subscription.primary_partition
        )
        self.context.forward(Record(record.key.primary_key, response, timestamp, record.headers))

    def close(self) -> None:
        self._getter.close()


class ForeignTableJoin(OperatorSupplier):
    """Sends a response to every subscription of a right-hand key that changes (`ForeignTableJoinProcessorSupplier`).

    A record goes to the response topic: its key is the primary key, its value is a SubscriptionResponseWrapper.
    """

    def __init__(self, builder: StoreBuilder, key_schema: CombinedKeySchema) -> None:
        """Define the join.

        Args:
            builder: the subscription store.
            key_schema: reads the keys of the store.
        """
        self.builder = builder
        self.key_schema = key_schema
        self.versioned_semantics = False

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _ForeignTableJoinProcessor(self)

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the subscription store."""
        return (self.builder,)

    def enable_versioned_semantics(self, enabled: bool) -> None:
        """Drop changes of a versioned table that are not its latest, if enabled (KIP-914)."""
        self.versioned_semantics = enabled


class _ForeignTableJoinProcessor(OperatorProcessor):
    def __init__(self, supplier: ForeignTableJoin) -> None:
        self._supplier = supplier

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._supplier.key_schema.serdes.use_defaults(context)
        self._store: TimestampedKeyValueStore[bytes, SubscriptionWrapper]
        self._store = context.state_store(self._supplier.builder.name)

    def process(self, record: Record[Any, Change[Any]]) -> None:
        if record.key is None:
            self.context.drop("null key")
            return
        if self._supplier.versioned_semantics and not record.value.is_latest:
            self.context.drop("out-of-order record of a versioned table")
            return
        schema = self._supplier.key_schema
        for key, stored in self._store.prefix_scan(schema.prefix_bytes(record.key), BYTES):
            subscription = stored.value
            response = SubscriptionResponseWrapper(
                subscription.hash, record.value.new_value, subscription.primary_partition
            )
            self.context.forward(record.with_key(schema.from_bytes(key).primary_key).with_value(response))


class ResponseJoin(OperatorSupplier):
    """Makes the results from responses and the left-hand table (`ResponseJoinProcessorSupplier`)."""

    def __init__(
        self, value_getter_supplier: ValueGetterSupplier, serdes: ForeignKeySerdes, joiner: ValueJoiner, left: bool
    ) -> None:
        """Define the join.

        Args:
            value_getter_supplier: reads the left-hand table.
            serdes: the serdes of the join.
            joiner: makes the result.
            left: whether a left-hand record without a match has a result.
        """
        self.value_getter_supplier = value_getter_supplier
        self.serdes = serdes
        self.joiner = joiner
        self.left = left

    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""
        return _ResponseJoinProcessor(self)


class _ResponseJoinProcessor(OperatorProcessor):
    def __init__(self, supplier: ResponseJoin) -> None:
        self._supplier = supplier
        self._getter = supplier.value_getter_supplier.get()

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._supplier.serdes.use_defaults(context)
        self._getter.init(context)

    def process(self, record: Record[Any, SubscriptionResponseWrapper]) -> None:
        current = value_or_none(self._getter.get(record.key))
        current_hash = None if current is None else hash128(self._supplier.serdes.value.to_bytes(current) or b"")
        if record.value.original_value_hash != current_hash:
            # The left-hand value has changed since the subscription. The change has sent a subscription of its own.
            self.context.drop("outdated response of a foreign-key join")
            return
        foreign_value = record.value.foreign_value
        if foreign_value is None and (not self._supplier.left or current is None):
            result = None
        else:
            result = self._supplier.joiner(current, foreign_value)
        self.context.forward(record.with_value(result))
