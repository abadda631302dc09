"""Joins of two tables. Results without old values are those of Kafka's TopologyTestDriver 4.4.0."""

from __future__ import annotations

from typing import Any

from pybroker.streams.operators.stream_table_join import StreamTableJoin
from pybroker.streams.operators.table import Table
from pybroker.streams.operators.table_join import (
    InnerTableJoin,
    LeftTableJoin,
    OuterTableJoin,
    RightTableJoin,
    TableJoinMerger,
    TableTableJoin,
    reverse_value_joiner,
)
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.processor import Processor
from pybroker.streams.records import Change, Record
from pybroker.streams.state.builders import StoreBuilder, timestamped_key_value_store
from tests.support.stream_joins import JoinTask, joined, values_joined


class JoinedTables:
    """Two tables, both sides of their join, and the merger. `play` returns new values as results."""

    def __init__(
        self, left_join: type[TableTableJoin], right_join: type[TableTableJoin], store: StoreBuilder | None = None
    ) -> None:
        self.task = JoinTask()
        self.left, self.right = (TableSource(timestamped_key_value_store(name), name) for name in ("left", "right"))
        tables = Table(self.left, "left"), Table(self.right, "right")
        self.left_join = left_join(*tables, values_joined)
        self.right_join = right_join(tables[1], tables[0], reverse_value_joiner(values_joined))
        self.merger = TableJoinMerger(self.left_join, self.right_join, store.name if store else None, store)

    def nodes(self, changes: bool = False) -> dict[str, Processor[Any, Any]]:
        """Return the nodes by name. `changes` collects changes instead of new values."""
        task = self.task
        for source in (self.left, self.right):
            for builder in source.stores():
                task.add_store(builder)

        def new_value(record: Record[Any, Change[Any]]) -> None:
            task.collect(record.with_value(record.value.new_value))

        merge = task.node(self.merger, task.collect if changes else new_value)
        left_join, right_join = (task.node(side, merge.process) for side in (self.left_join, self.right_join))
        return {
            "left": task.node(self.left, left_join.process),
            "right": task.node(self.right, right_join.process),
            "probe": task.node(StreamTableJoin(self.merger.view(), joined, True)),
        }


def test_left_join_with_a_store_emits_and_stores_each_result() -> None:
    tables = JoinedTables(LeftTableJoin, RightTableJoin, timestamped_key_value_store("joined"))
    tables.left.enable_sending_old_values(True)
    results = tables.task.play(
        tables.nodes(),
        ("left", "a", "l1", 10),
        ("right", "a", "r1", 5),
        ("right", "b", "r2", 20),
        ("right", "a", None, 30),
        ("left", "a", "x", 31),
        ("left", "a", None, 25),
        ("probe", "a", "p", 40),
        ("left", "b", "l2", 12),
        ("probe", "b", "p", 41),
    )
    assert results == [
        [("a", "l1+None", 10)],
        [("a", "l1+r1", 10)],
        [],
        [("a", "l1+None", 30)],
        [("a", None, 31)],
        [("a", None, 25)],
        [("a", "a:p+None", 40)],
        [("b", "l2+r2", 20)],
        [("b", "b:p+l2+r2", 41)],
    ]


def test_outer_join_without_a_store_computes_its_values_from_both_tables() -> None:
    tables = JoinedTables(OuterTableJoin, OuterTableJoin)
    for source in (tables.left, tables.right):
        source.enable_sending_old_values(True)
    results = tables.task.play(
        tables.nodes(),
        ("left", "a", "l1", 10),
        ("right", "a", "r1", 5),
        ("probe", "a", "p", 1),
        ("left", "a", None, 12),
        ("right", "a", None, 6),
        ("probe", "a", "q", 7),
        ("right", "a", None, 7),
    )
    assert results == [
        [("a", "l1+None", 10)],
        [("a", "l1+r1", 10)],
        [("a", "a:p+l1+r1", 1)],
        [("a", "None+r1", 12)],
        [("a", None, 6)],
        [("a", "a:q+None", 7)],
        [],
    ]


def test_inner_join_emits_a_deletion_for_every_deleted_record_with_a_match() -> None:
    tables = JoinedTables(InnerTableJoin, InnerTableJoin)
    results = tables.task.play(
        tables.nodes(),
        ("left", "a", "l1", 10),
        ("right", "a", "r1", 5),
        ("right", "a", "r2", 20),
        ("left", "a", None, 8),
        ("left", "a", None, 9),
    )
    assert results == [[], [("a", "l1+r1", 10)], [("a", "l1+r2", 20)], [("a", None, 20)], [("a", None, 20)]]


def test_changes_of_an_outer_join_carry_the_joined_old_value() -> None:
    tables = JoinedTables(OuterTableJoin, OuterTableJoin)
    assert tables.merger.enable_sending_old_values(False)
    rows = (("left", "a", "l1", 10), ("right", "a", "r1", 11), ("left", "a", "l2", 12), ("right", "a", None, 13))
    results = [row[0][1] for row in tables.task.play(tables.nodes(changes=True), *rows)]
    assert results == [
        Change("l1+None", None),
        Change("l1+r1", "l1+None"),
        Change("l2+r1", "l1+r1"),
        Change("l2+None", "l2+r1"),
    ]


def test_joined_getters_name_the_stores_of_both_tables_once() -> None:
    assert tuple(JoinedTables(InnerTableJoin, InnerTableJoin).merger.view().store_names) == ("left", "right")
    stored = JoinedTables(InnerTableJoin, InnerTableJoin, timestamped_key_value_store("joined"))
    assert tuple(stored.merger.view().store_names) == ("joined",)


def test_records_without_a_key_and_outdated_changes_of_versioned_tables_are_dropped() -> None:
    task = JoinTask()
    left, right = (TableSource(timestamped_key_value_store(name), name) for name in ("left", "right"))
    join = InnerTableJoin(Table(left, "left"), Table(right, "right"), values_joined)
    join.enable_versioned_semantics(True)
    task.add_store(right.builder)
    node = task.node(join)
    task.pipe(node, (None, Change("l1", None), 10))
    task.pipe(node, ("a", Change("l1", None, is_latest=False), 10))
    assert task.dropped == ["null key", "out-of-order record of a versioned table"]
    assert task.lines() == []
