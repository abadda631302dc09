"""Joins of two streams. The expected results are those of Kafka's TopologyTestDriver 4.4.0 for the same records."""

from __future__ import annotations

from typing import Any

from pybroker.streams.operators.stream_join import (
    JoinWindowStore,
    LeftSideJoin,
    RightSideJoin,
    SelfJoin,
    TimeTrackerSupplier,
    reverse_joiner,
)
from pybroker.streams.processor import Processor
from pybroker.streams.state.builders import outer_join_store, window_store
from pybroker.streams.windows import JoinWindows
from tests.support.stream_joins import JoinTask, joined

Nodes = dict[str, Processor[Any, Any]]


def join_nodes(task: JoinTask, windows: JoinWindows, left_outer: bool, right_outer: bool) -> Nodes:
    """Return the nodes of both sides of a join."""
    retention = windows.size_ms + windows.grace_ms
    left = window_store("left", retention, windows.size_ms, retain_duplicates=True)
    right = window_store("right", retention, windows.size_ms, retain_duplicates=True)
    outer = outer_join_store("outer") if left_outer else None
    trackers = TimeTrackerSupplier()
    left_join = task.node(LeftSideJoin(windows, joined, left_outer, trackers, right, outer))
    right_join = task.node(RightSideJoin(windows, reverse_joiner(joined), right_outer, trackers, left, outer))
    return {
        "left": task.node(JoinWindowStore(left), left_join.process),
        "right": task.node(JoinWindowStore(right), right_join.process),
    }


def test_outer_join_emits_unmatched_records_of_both_sides_when_their_windows_close() -> None:
    task = JoinTask()
    nodes = join_nodes(task, JoinWindows(10, 20, 5), True, True)
    results = task.play(
        nodes,
        ("left", "a", "l1", 100),
        ("right", "a", "r1", 115),
        ("right", "a", "r2", 121),
        ("left", None, "l2", 116),
        ("right", "b", None, 117),
        ("left", "b", "l3", 90),
        ("left", "c", "l4", 150),
        ("right", "d", "r3", 200),
        ("left", "d", "l5", 240),
    )
    assert results == [
        [],
        [("a", "a:l1+r1", 115)],
        [],
        [(None, "None:l2+None", 116)],
        [],
        [("b", "b:l3+None", 90)],
        [("a", "a:None+r2", 121)],
        [("c", "c:l4+None", 150)],
        [("d", "d:None+r3", 200)],
    ]
    assert task.dropped == ["null key or value"]


def test_left_join_emits_all_unmatched_values_of_one_key_and_time() -> None:
    task = JoinTask()
    nodes = join_nodes(task, JoinWindows(10, 10, 0), True, False)
    results = task.play(
        nodes,
        ("left", "a", "l1", 100),
        ("left", "a", "l2", 100),
        ("right", "b", "r1", 105),
        ("right", "a", "r2", 111),
        ("left", "c", "l3", 80),
    )
    assert results[3:] == [
        [("a", "a:l1+None", 100), ("a", "a:l2+None", 100)],
        [("c", "c:l3+None", 80)],
    ]
    assert results[:3] == [[], [], []]


def test_left_join_does_not_emit_a_record_that_the_other_side_matches_later() -> None:
    task = JoinTask()
    nodes = join_nodes(task, JoinWindows(10, 10, 0), True, False)
    results = task.play(nodes, ("left", "a", "l1", 100), ("right", "a", "r1", 105), ("right", "b", "r2", 200))
    assert results == [[], [("a", "a:l1+r1", 105)], []]


def test_inner_join_drops_records_without_a_key() -> None:
    task = JoinTask()
    nodes = join_nodes(task, JoinWindows(10, 10, 0), False, False)
    assert task.play(nodes, ("left", None, "l1", 100), ("right", "a", "r1", 100)) == [[], []]
    assert task.dropped == ["null key or value"]


def test_expired_records_wait_for_the_emit_interval_of_the_wall_clock() -> None:
    task = JoinTask()
    task.emit_interval_ms = 1000
    nodes = join_nodes(task, JoinWindows(10, 10, 0), True, False)
    task.wall_clock_ms = 5000
    # The first record already starts the interval: without a known minimum the store is scanned.
    assert task.play(nodes, ("left", "a", "l1", 100), ("left", "b", "l2", 200)) == [[], []]
    task.wall_clock_ms = 5999
    assert task.play(nodes, ("right", "c", "r1", 300)) == [[]]
    task.wall_clock_ms = 6000
    assert task.play(nodes, ("right", "c", "r1", 300)) == [[("a", "a:l1+None", 100), ("b", "b:l2+None", 200)]]


def test_expired_results_have_the_headers_of_the_record_that_closes_the_window() -> None:
    task = JoinTask()
    nodes = join_nodes(task, JoinWindows(10, 10, 0), True, False)
    task.pipe(nodes["left"], ("a", "l1", 100), (("h", b"1"),))
    task.pipe(nodes["right"], ("b", "r1", 111), (("h", b"2"),))
    assert [(record.value, record.headers) for record in task.results] == [("a:l1+None", (("h", b"2"),))]


def test_self_join_emits_the_results_of_a_join_of_two_streams_in_their_order() -> None:
    task = JoinTask()
    windows = JoinWindows(10, 20, 5)
    store = window_store("self", 35, 30, retain_duplicates=True)
    join = task.node(SelfJoin(store, windows, joined, 35))
    nodes = {"left": task.node(JoinWindowStore(store), join.process)}
    results = task.play(
        nodes,
        ("left", "a", "1", 100),
        ("left", "a", "2", 110),
        ("left", "a", "3", 95),
        ("left", None, "4", 100),
        ("left", "a", "5", 60),
    )
    assert results == [
        [("a", "a:1+1", 100)],
        [("a", "a:2+1", 110), ("a", "a:1+2", 110), ("a", "a:2+2", 110)],
        [("a", "a:3+1", 100), ("a", "a:3+2", 110), ("a", "a:3+3", 95), ("a", "a:1+3", 100)],
        [],
        [],
    ]
    assert task.dropped == ["null key or value"]
