"""Joins of a stream with a table. The expected results are those of Kafka's TopologyTestDriver 4.4.0."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.streams.errors import TopologyError
from pybroker.streams.operators.stream_table_join import StreamGlobalTableJoin, StreamTableJoin
from pybroker.streams.operators.table_source import TableSource
from pybroker.streams.processor import Processor
from pybroker.streams.state.builders import join_buffer, timestamped_key_value_store, versioned_key_value_store
from tests.support.stream_joins import JoinTask, joined


def ignore(_: Any) -> None:
    """Receive the changes of a table that the test does not check."""


def table_node(task: JoinTask, versioned: bool = False) -> tuple[TableSource, Processor[Any, Any]]:
    """Return a table and its node."""
    make = versioned_key_value_store("table", 1000) if versioned else timestamped_key_value_store("table")
    source = TableSource(make, "table")
    return source, task.node(source, ignore)


def test_left_join_emits_records_without_a_match_and_drops_those_without_a_value() -> None:
    task = JoinTask()
    table, node = table_node(task)
    nodes = {"right": node, "left": task.node(StreamTableJoin(table.view(), joined, True))}
    results = task.play(
        nodes,
        ("left", "a", "l0", 5),
        ("right", "a", "r1", 10),
        ("left", "a", "l1", 20),
        ("left", None, "l2", 21),
        ("left", "a", None, 22),
        ("left", "a", "l3", 1),
    )
    assert results == [
        [("a", "a:l0+None", 5)],
        [],
        [("a", "a:l1+r1", 20)],
        [(None, "None:l2+None", 21)],
        [],
        [("a", "a:l3+r1", 1)],
    ]
    assert task.dropped == ["null join key or value"]


def test_inner_join_emits_no_result_without_a_match() -> None:
    task = JoinTask()
    table, node = table_node(task)
    nodes = {"right": node, "left": task.node(StreamTableJoin(table.view(), joined, False))}
    assert task.play(nodes, ("left", "a", "l0", 5), ("left", None, "l1", 6)) == [[], []]
    assert task.dropped == ["null join key or value"]


def test_join_with_a_versioned_table_uses_the_value_as_of_the_record() -> None:
    task = JoinTask()
    table, node = table_node(task, versioned=True)
    nodes = {"right": node, "left": task.node(StreamTableJoin(table.view(), joined, False))}
    rows = (("right", "a", "r1", 10), ("right", "a", "r2", 20), ("left", "a", "l1", 15), ("left", "a", "l2", 20))
    assert task.play(nodes, *rows)[2:] == [[("a", "a:l1+r1", 15)], [("a", "a:l2+r2", 20)]]


def test_grace_period_delays_a_record_until_earlier_versions_have_arrived() -> None:
    task = JoinTask()
    table, node = table_node(task, versioned=True)
    join = StreamTableJoin(table.view(), joined, True, 10, join_buffer("buffer", 10))
    nodes = {"right": node, "left": task.node(join)}
    results = task.play(
        nodes,
        ("left", "a", "l1", 100),
        ("right", "a", "r1", 99),
        ("left", "a", "l2", 110),
        ("left", "a", "l3", 99),
    )
    # The record of time 99 is later than the grace period: it joins at once.
    assert results == [[], [], [("a", "a:l1+r1", 100)], [("a", "a:l3+r1", 99)]]


def test_grace_period_needs_a_versioned_table() -> None:
    task = JoinTask()
    table, _ = table_node(task)
    with pytest.raises(TopologyError, match="needs a versioned table"):
        task.node(StreamTableJoin(table.view(), joined, True, 10, join_buffer("buffer", 10)))


def first_letter(_: Any, value: str | None) -> str | None:
    return None if value is None or value.startswith("n") else value[:1]


def test_global_table_join_searches_the_key_that_the_selector_returns() -> None:
    task = JoinTask()
    table, node = table_node(task)
    nodes = {"right": node, "left": task.node(StreamGlobalTableJoin(table.view(), joined, first_letter, False))}
    rows = (("right", "k", "r1", 10), ("left", "a", "key", 20), ("left", "a", "none", 21), ("left", "a", "other", 22))
    assert task.play(nodes, *rows) == [[], [("a", "a:key+r1", 20)], [], []]
    assert task.dropped == ["null join key or value"]


def test_joiner_with_the_mapped_key_receives_the_key_of_the_global_table() -> None:
    task = JoinTask()
    table, node = table_node(task)
    join = StreamGlobalTableJoin.with_mapped_key(table.view(), lambda *values: "/".join(values), first_letter, False)
    nodes = {"right": node, "left": task.node(join)}
    assert task.play(nodes, ("right", "k", "r1", 10), ("left", "a", "key", 20))[1] == [("a", "a/k/key/r1", 20)]
