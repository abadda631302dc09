"""The operator that reads a topic as a table."""

from pybroker.streams.operators.table import Table
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state.builders import timestamped_key_value_store, versioned_key_value_store
from tests.support.streams import run


def test_source_without_a_store_forwards_changes_without_old_values() -> None:
    source = TableSource(timestamped_key_value_store("table"), None)
    chain = run(source, [("a", 1, 10), ("a", None, 5), (None, 2, 11)])
    assert chain.changes() == [("a", 1, None, 10), ("a", None, None, 5)]
    assert chain.dropped == ["null key"]
    assert source.stores() == ()


def test_old_values_need_a_store() -> None:
    source = TableSource(timestamped_key_value_store("table"), None)
    assert not Table(source, None).enable_sending_old_values(False)
    assert source.queryable_name is None
    assert Table(source, None).enable_sending_old_values(True)
    assert source.queryable_name == "table"


def test_out_of_order_record_replaces_the_value_of_a_timestamped_store() -> None:
    source = TableSource(timestamped_key_value_store("table"), None)
    table = Table(source, None)
    table.enable_sending_old_values(True)
    chain = run(source, [("a", 1, 10), ("a", 2, 5), ("a", None, 20)])
    assert chain.changes() == [("a", 1, None, 10), ("a", 2, 1, 5), ("a", None, 2, 20)]


def test_getter_reads_the_store_of_the_source() -> None:
    source = TableSource(timestamped_key_value_store("table"), None)
    getters = Table(source, None).value_getter_supplier()
    assert list(getters.store_names) == ["table"]
    chain = run(source, [("a", 1, 10)])
    getter = chain.getter(getters)
    assert getter.get("a") == ValueAndTimestamp(1, 10)
    assert getter.get("b") is None
    assert not getter.is_versioned


def test_out_of_order_record_of_a_versioned_store_is_not_the_latest() -> None:
    source = TableSource(versioned_key_value_store("table", 1_000), "table")
    chain = run(source, [("a", 1, 5_000), ("a", 2, 4_500), ("a", 3, 3_000)])
    records = chain.records()
    assert [(r.value.new_value, r.timestamp, r.value.is_latest) for r in records] == [
        (1, 5_000, True),
        (2, 4_500, False),
    ]
    getter = chain.getter(source.view())
    assert getter.is_versioned
    assert getter.get("a") == ValueAndTimestamp(1, 5_000)
    assert getter.get_as_of("a", 4_700) == ValueAndTimestamp(2, 4_500)
