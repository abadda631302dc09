"""The base class of aggregations: operators whose result always has a store."""

from __future__ import annotations

from collections.abc import Sequence

from pybroker.streams.operators.table import TableSupplier, ValueGetter, ValueGetterSupplier
from pybroker.streams.operators.value_getters import StoreGetters, TableStoreGetter
from pybroker.streams.state.builders import StoreBuilder


class StoredTable(TableSupplier):
    """A table that always has a store, and so always can send old values."""

    def __init__(self, builder: StoreBuilder) -> None:
        self.builder = builder
        self.sends_old_values = False

    def stores(self) -> Sequence[StoreBuilder]:
        """Return the builder of the store."""
        return (self.builder,)

    def make_getter(self, store_name: str) -> ValueGetter:
        """Return a getter of the store."""
        return TableStoreGetter(store_name)

    def view(self) -> ValueGetterSupplier:
        """Return getters of the store."""
        return StoreGetters(self.builder.name, self.make_getter)

    def enable_sending_old_values(self, force_materialization: bool) -> bool:  # noqa: ARG002 - the table has a store already
        """Make changes carry the old value."""
        self.sends_old_values = True
        return True
