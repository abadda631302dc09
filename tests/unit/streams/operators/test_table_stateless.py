"""Filters, mapped values and transformed values of tables."""

from typing import Any

import pytest

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.stream_aggregation import StreamAggregate
from pybroker.streams.operators.table import Table
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.operators.table_stateless import TableFilter, TableMapValues, TablePassThrough
from pybroker.streams.operators.table_transform_values import TableTransformValues, ValueTransformer
from pybroker.streams.processor import ProcessorContext
from pybroker.streams.records import Record, ValueAndTimestamp
from pybroker.streams.state.builders import timestamped_key_value_store, versioned_key_value_store
from tests.support.streams import OperatorChain


def source(queryable: bool = False) -> TableSource:
    return TableSource(timestamped_key_value_store("source"), "source" if queryable else None)


def even(_key: Any, value: int) -> bool:
    return value % 2 == 0


def test_filter_of_a_table_without_a_store_forwards_every_tombstone() -> None:
    table = source()
    chain = OperatorChain(table, TableFilter(Table(table, None), even, False))
    for value in (1, 2, 3):
        chain.pipe("a", value, value)
    assert chain.changes() == [("a", None, None, 1), ("a", 2, None, 2), ("a", None, None, 3)]


def test_filter_of_a_table_with_a_store_leaves_out_unnecessary_tombstones() -> None:
    table = source(queryable=True)
    chain = OperatorChain(table, TableFilter(Table(table, "source"), even, False))
    for value in (1, 2, 3, 5):
        chain.pipe("a", value, value)
    assert chain.changes() == [("a", 2, None, 2), ("a", None, 2, 3)]


def test_filter_not_with_a_store_reads_old_values_from_its_store() -> None:
    table = source()
    builder = timestamped_key_value_store("odd")
    filtered = TableFilter(Table(table, None), even, True, "odd", builder)
    assert filtered.enable_sending_old_values(False)
    chain = OperatorChain(table, filtered)
    for value in (1, 3, 4):
        chain.pipe("a", value, value)
    assert chain.changes() == [("a", 1, None, 1), ("a", 3, 1, 3), ("a", None, 3, 4)]
    assert chain.getter(filtered.view()).get("a") is None


def test_getter_of_a_filter_computes_from_the_store_of_the_parent() -> None:
    table = source()
    filtered = TableFilter(Table(table, None), even, False)
    getters = filtered.view()
    assert list(getters.store_names) == ["source"]
    chain = OperatorChain(table, filtered)
    chain.pipe("a", 1, 1)
    chain.pipe("b", 2, 2)
    getter = chain.getter(getters)
    assert [getter.get(key) for key in "abc"] == [None, ValueAndTimestamp(2, 2), None]


def test_filter_with_versioned_semantics_forwards_every_tombstone() -> None:
    table = TableSource(versioned_key_value_store("source", 10_000), "source")
    filtered = TableFilter(Table(table, "source"), even, False)
    filtered.enable_versioned_semantics(True)
    chain = OperatorChain(table, filtered)
    chain.pipe("a", 1, 10)
    chain.pipe("a", 3, 5)
    assert [(r.value.new_value, r.value.is_latest) for r in chain.records()] == [(None, True), (None, False)]


def test_map_values_keeps_tombstones_and_maps_old_values() -> None:
    table = source(queryable=True)
    mapped = TableMapValues(Table(table, "source"), lambda key, value: f"{key}{value}")
    assert mapped.enable_sending_old_values(False)
    chain = OperatorChain(table, mapped)
    chain.pipe("a", 1, 10)
    chain.pipe("a", 2, 9)
    chain.pipe("a", None, 11)
    assert chain.changes() == [("a", "a1", None, 10), ("a", "a2", "a1", 9), ("a", None, "a2", 11)]
    chain.pipe("b", 5, 12)
    assert chain.getter(mapped.view()).get("b") == ValueAndTimestamp("b5", 12)


def test_map_values_with_a_store_keeps_the_result() -> None:
    table = source()
    mapped = TableMapValues(
        Table(table, None), lambda _key, value: value * 10, "mapped", timestamped_key_value_store("mapped")
    )
    chain = OperatorChain(table, mapped)
    chain.pipe("a", 1, 10)
    assert chain.changes() == [("a", 10, None, 10)]
    assert chain.getter(mapped.view()).get("a") == ValueAndTimestamp(10, 10)


def test_pass_through_makes_all_parents_send_old_values() -> None:
    builder = timestamped_key_value_store("shared")
    parents = [StreamAggregate(builder, lambda: 0, lambda _key, value, total: total + value) for _ in range(2)]
    merged = TablePassThrough(parents, "shared")
    assert merged.enable_sending_old_values(False)
    assert [parent.sends_old_values for parent in parents] == [True, True]
    chain = OperatorChain(parents[0], merged)
    chain.pipe("a", 1, 10)
    assert chain.changes() == [("a", 1, 0, 10)]
    assert chain.getter(merged.view()).get("a") == ValueAndTimestamp(1, 10)


class Describer(ValueTransformer[str, int, str]):
    """Returns the value and the offset of the current record."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def transform(self, key: str, value: int | None) -> str | None:
        metadata = self.context.record_metadata
        return f"{value} at {None if metadata is None else metadata.offset}"


def test_transformer_receives_tombstones_and_record_metadata() -> None:
    table = source(queryable=True)
    transformed = TableTransformValues(Table(table, "source"), Describer)
    assert transformed.enable_sending_old_values(False)
    chain = OperatorChain(table, transformed)
    chain.pipe("a", 1, 10)
    chain.pipe("a", None, 11)
    assert chain.changes() == [("a", "1 at 0", "None at 0", 10), ("a", "None at 1", "1 at 1", 11)]


def test_getter_of_a_transformer_has_no_record_metadata() -> None:
    table = source(queryable=True)
    transformed = TableTransformValues(Table(table, "source"), Describer)
    chain = OperatorChain(table, transformed)
    chain.pipe("a", 1, 10)
    getter = chain.getter(transformed.view())
    assert getter.get("a") == ValueAndTimestamp("1 at None", 10)
    assert getter.get("b") == ValueAndTimestamp("None at None", -1)


class Forwarder(Describer):
    """Tries to forward a record."""

    def transform(self, key: str, value: int | None) -> str | None:
        self.context.forward(Record(key, value, 0))
        return None


def test_transformer_cannot_forward() -> None:
    table = source()
    chain = OperatorChain(table, TableTransformValues(Table(table, None), Forwarder))
    with pytest.raises(StreamsError, match="cannot forward"):
        chain.pipe("a", 1, 10)
