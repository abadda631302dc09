"""How operators of tables reach each other: value getters, old values, and suppliers of processors."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Protocol

from pybroker.streams.processor import Processor, ProcessorContext
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state.builders import StoreBuilder


class ValueGetter(abc.ABC):
    """Reads the current value of a table, from a store or by computing it from its parent's (`KTableValueGetter`)."""

    @abc.abstractmethod
    def init(self, context: ProcessorContext) -> None:
        """Open the stores that the getter reads, through the context of the node that uses it."""

    @abc.abstractmethod
    def get(self, key: Any) -> ValueAndTimestamp[Any] | None:
        """Return the latest value of a key and its timestamp, or None."""

    def get_as_of(self, key: Any, timestamp: int) -> ValueAndTimestamp[Any] | None:
        """Return the value that a key had at a timestamp, in milliseconds. Only versioned tables have it."""
        raise NotImplementedError(f"the table is not versioned: no value as of {timestamp}")

    @property
    def is_versioned(self) -> bool:
        """Whether the values come from a versioned store."""
        return False

    def close(self) -> None:  # noqa: B027 - most getters acquire nothing
        """Release what `init` has acquired."""


class ValueGetterSupplier(Protocol):
    """Makes a value getter for each task, and names the stores that it reads (`KTableValueGetterSupplier`)."""

    @property
    def store_names(self) -> Sequence[str]:
        """The stores that must be connected to a node that uses the getter."""

    def get(self) -> ValueGetter:
        """Return a new getter."""


class OperatorSupplier(abc.ABC):
    """Makes the processor of one operator for each task, and the builders of the stores that it owns."""

    @abc.abstractmethod
    def __call__(self) -> Processor[Any, Any]:
        """Return a new processor."""

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builders of the stores to add to the topology and to connect to the node."""
        return ()


class TableSupplier(OperatorSupplier):
    """An operator whose result is a table (`KTableProcessorSupplier`)."""

    @abc.abstractmethod
    def view(self) -> ValueGetterSupplier:
        """Return the supplier of getters of this operator's result."""

    @abc.abstractmethod
    def enable_sending_old_values(self, force_materialization: bool) -> bool:
        """Make changes carry the old value, and return whether they will.

        Without `force_materialization` it fails if neither this operator nor its parents have a store.
        """


class Table:
    """The result of an operator on tables, as the next operators see it."""

    def __init__(self, supplier: TableSupplier, queryable_name: str | None) -> None:
        self.supplier = supplier
        self.queryable_name = queryable_name
        """The name of the store of the result; None if it is computed on demand."""
        self.sends_old_values = False

    def value_getter_supplier(self) -> ValueGetterSupplier:
        """Return the supplier of getters of this table."""
        return self.supplier.view()

    def enable_sending_old_values(self, force_materialization: bool) -> bool:
        """Make changes of this table carry the old value, and return whether they will."""
        if not self.sends_old_values:
            self.sends_old_values = self.supplier.enable_sending_old_values(force_materialization)
        return self.sends_old_values
