"""Value getters that read a store of the operator, and those that compute a value from the parent's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pybroker.streams.operators.table import Table, ValueGetter, ValueGetterSupplier
from pybroker.streams.processor import ProcessorContext
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state.wrapper import TableStore
from pybroker.streams.windows import Windowed


class StoreGetters(ValueGetterSupplier):
    """Supplies getters that read one store. `make` returns a getter of a store name."""

    def __init__(self, store_name: str, make: Callable[[str], ValueGetter]) -> None:
        self._store_name = store_name
        self._make = make

    @property
    def store_names(self) -> Sequence[str]:
        """The store that the getters read."""
        return (self._store_name,)

    def get(self) -> ValueGetter:
        """Return a new getter."""
        return self._make(self._store_name)


class ParentGetters(ValueGetterSupplier):
    """Supplies getters that compute their values from those of a parent. `make` returns a getter of the parent's."""

    def __init__(self, parent: Table, make: Callable[[ValueGetter], ValueGetter]) -> None:
        self._parent = parent.value_getter_supplier()
        self._make = make

    @property
    def store_names(self) -> Sequence[str]:
        """The stores that the parent's getters read."""
        return self._parent.store_names

    def get(self) -> ValueGetter:
        """Return a new getter."""
        return self._make(self._parent.get())


class TableStoreGetter(ValueGetter):
    """Reads a timestamped or versioned key-value store."""

    def __init__(self, store_name: str) -> None:
        self._store_name = store_name

    def init(self, context: ProcessorContext) -> None:
        """Open the store."""
        self._store: TableStore[Any, Any] = TableStore(context.state_store(self._store_name))

    def get(self, key: Any) -> ValueAndTimestamp[Any] | None:
        """Return the latest value of a key and its timestamp, or None."""
        return self._store.get(key)

    def get_as_of(self, key: Any, timestamp: int) -> ValueAndTimestamp[Any] | None:
        """Return the value that a key had at a timestamp, in milliseconds."""
        return self._store.get_as_of(key, timestamp)

    @property
    def is_versioned(self) -> bool:
        """Whether the store is versioned."""
        return self._store.is_versioned


class WindowStoreGetter(ValueGetter):
    """Reads a timestamped window store. The keys are `Windowed`."""

    def __init__(self, store_name: str) -> None:
        self._store_name = store_name

    def init(self, context: ProcessorContext) -> None:
        """Open the store."""
        self._store = context.state_store(self._store_name)

    def get(self, key: Windowed[Any]) -> ValueAndTimestamp[Any] | None:
        """Return the value of a key in a window, or None."""
        value: ValueAndTimestamp[Any] | None = self._store.fetch(key.key, key.window.start)
        return value


class SessionStoreGetter(ValueGetter):
    """Reads a session store. The keys are `Windowed`; the timestamp of a value is the end of its session."""

    def __init__(self, store_name: str) -> None:
        self._store_name = store_name

    def init(self, context: ProcessorContext) -> None:
        """Open the store."""
        self._store = context.state_store(self._store_name)

    def get(self, key: Windowed[Any]) -> ValueAndTimestamp[Any] | None:
        """Return the value of a key in a session, or None."""
        return with_timestamp(self._store.fetch_session(key.key, key.window.start, key.window.end), key.window.end)


class ComputedGetter(ValueGetter):
    """Computes each value from the parent's. A subclass implements `compute`."""

    def __init__(self, parent: ValueGetter) -> None:
        self._parent = parent

    def init(self, context: ProcessorContext) -> None:
        """Open the stores of the parent."""
        self._parent.init(context)

    def compute(self, key: Any, value: ValueAndTimestamp[Any] | None) -> ValueAndTimestamp[Any] | None:
        """Return the value that follows from the parent's value of a key."""
        raise NotImplementedError

    def get(self, key: Any) -> ValueAndTimestamp[Any] | None:
        """Return the latest value of a key and its timestamp, or None."""
        return self.compute(key, self._parent.get(key))

    def get_as_of(self, key: Any, timestamp: int) -> ValueAndTimestamp[Any] | None:
        """Return the value that a key had at a timestamp, in milliseconds."""
        return self.compute(key, self._parent.get_as_of(key, timestamp))

    @property
    def is_versioned(self) -> bool:
        """Whether the parent's values come from a versioned store."""
        return self._parent.is_versioned

    def close(self) -> None:
        """Close the parent's getter."""
        self._parent.close()


def value_or_none(value: ValueAndTimestamp[Any] | None) -> Any:
    """Return the value without its timestamp, or None."""
    return None if value is None else value.value


def with_timestamp(value: Any, timestamp: int) -> ValueAndTimestamp[Any] | None:
    """Return a value with its timestamp in milliseconds. None stays None."""
    return None if value is None else ValueAndTimestamp(value, timestamp)
