"""Regrouped tables, and aggregations with a subtractor."""

from typing import Any

import pytest

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.table import Table
from pybroker.streams.operators.table_grouping import TableAggregate, TableReduce, TableRepartitionMap
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.records import Change, ValueAndTimestamp
from pybroker.streams.serdes import JSON
from pybroker.streams.state.builders import timestamped_key_value_store, versioned_key_value_store
from tests.support.streams import OperatorChain


def regrouped() -> tuple[TableSource, TableRepartitionMap]:
    """Return a table of user -> [region, amount], and the same table grouped by region."""
    source = TableSource(timestamped_key_value_store("users", value_serde=JSON), None)
    table = Table(source, None)
    table.enable_sending_old_values(True)
    return source, TableRepartitionMap(table, lambda _user, value: (value[0], value[1]))


def test_old_value_is_removed_before_the_new_value_is_added() -> None:
    chain = OperatorChain(*regrouped())
    chain.pipe("ann", ["asia", 5], 10)
    chain.pipe("ann", ["europe", 7], 11)
    assert chain.changes() == [("asia", 5, None, 10), ("asia", None, 5, 11), ("europe", 7, None, 11)]


def test_update_within_a_group_is_one_change() -> None:
    chain = OperatorChain(*regrouped())
    chain.pipe("ann", ["asia", 5], 10)
    chain.pipe("ann", ["asia", 7], 11)
    chain.pipe("ann", None, 12)
    assert chain.changes() == [("asia", 5, None, 10), ("asia", 7, 5, 11), ("asia", None, 7, 12)]


def test_values_without_a_new_key_are_skipped() -> None:
    chain = OperatorChain(*regrouped())
    chain.pipe("ann", [None, 5], 10)
    chain.pipe("ann", ["asia", None], 11)
    assert chain.changes() == []


def test_out_of_order_changes_of_a_versioned_table_are_not_regrouped() -> None:
    source = TableSource(versioned_key_value_store("users", 10_000, value_serde=JSON), "users")
    regroup = TableRepartitionMap(Table(source, "users"), lambda _user, value: (value[0], value[1]))
    regroup.enable_versioned_semantics(True)
    chain = OperatorChain(source, regroup)
    chain.pipe("ann", ["asia", 5], 10)
    chain.pipe("ann", ["europe", 7], 9)
    assert chain.changes() == [("asia", 5, None, 10)]


def test_stores_of_a_regrouped_table_are_not_accessible() -> None:
    _source, regroup = regrouped()
    with pytest.raises(StreamsError):
        list(regroup.view().store_names)
    with pytest.raises(StreamsError):
        regroup.enable_sending_old_values(True)


def add(_key: Any, value: int, total: int) -> int:
    return total + value


def subtract(_key: Any, value: int, total: int) -> int:
    return total - value


def test_aggregate_subtracts_the_old_value_and_adds_the_new_value() -> None:
    table = TableAggregate(timestamped_key_value_store("sums"), lambda: 100, add, subtract)
    table.enable_sending_old_values(False)
    chain = OperatorChain(table)
    chain.pipe("asia", Change(5, None), 10)
    chain.pipe("asia", Change(7, 5), 8)
    chain.pipe("asia", Change(None, 7), 12)
    assert chain.changes() == [("asia", 105, None, 10), ("asia", 107, 105, 10), ("asia", 100, 107, 12)]


def test_old_value_of_an_unknown_group_is_ignored() -> None:
    table = TableAggregate(timestamped_key_value_store("sums"), lambda: 100, add, subtract)
    chain = OperatorChain(table)
    chain.pipe("asia", Change(None, 5), 10)
    assert chain.changes() == [("asia", None, None, 10)]


def test_aggregate_with_a_null_key_fails() -> None:
    chain = OperatorChain(TableAggregate(timestamped_key_value_store("sums"), lambda: 0, add, subtract))
    with pytest.raises(StreamsError, match="null key"):
        chain.pipe(None, Change(1, None), 10)


def test_reduce_starts_with_the_first_value() -> None:
    table = TableReduce(
        timestamped_key_value_store("sums"), lambda total, value: total + value, lambda total, value: total - value
    )
    table.enable_sending_old_values(False)
    chain = OperatorChain(table)
    chain.pipe("asia", Change(5, None), 10)
    chain.pipe("asia", Change(1, None), 9)
    chain.pipe("asia", Change(2, 5), 11)
    assert chain.changes() == [("asia", 5, None, 10), ("asia", 6, 5, 10), ("asia", 3, 6, 11)]
    assert chain.getter(table.view()).get("asia") == ValueAndTimestamp(3, 11)
