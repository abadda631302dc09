"""Aggregations over tumbling, hopping and unlimited windows."""

from typing import Any

import pytest

from pybroker.streams.operators.window_aggregation import StreamWindowAggregate
from pybroker.streams.records import ValueAndTimestamp
from pybroker.streams.state.builders import StoreBuilder, timestamped_window_store
from pybroker.streams.windows import (
    MAX_TIMESTAMP,
    AnyWindows,
    EmitStrategy,
    TimeWindow,
    TimeWindows,
    UnlimitedWindows,
    Windowed,
)
from tests.support.streams import MemoryTask, OperatorChain, run

UPDATE, CLOSE = EmitStrategy.ON_WINDOW_UPDATE, EmitStrategy.ON_WINDOW_CLOSE


def store(size_ms: int) -> StoreBuilder:
    return timestamped_window_store("windows", 86_400_000, size_ms)


def summed(windows: AnyWindows, builder: StoreBuilder, emit: EmitStrategy = UPDATE) -> StreamWindowAggregate:
    return StreamWindowAggregate(windows, builder, emit, lambda: 0, lambda _key, value, total: total + value)


def at(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, TimeWindow(start, end))


def test_tumbling_windows_sum_by_key_and_window() -> None:
    table = summed(TimeWindows.of_size_and_grace(10, 100), store(10))
    table.enable_sending_old_values(False)
    chain = run(table, [("a", 1, 3), ("a", 2, 9), ("a", 4, 10), ("a", 8, 4)])
    first = at("a", 0, 10)
    assert chain.changes() == [(first, 1, 0, 3), (first, 3, 1, 9), (at("a", 10, 20), 4, 0, 10), (first, 11, 3, 9)]
    assert chain.getter(table.view()).get(first) == ValueAndTimestamp(11, 9)


def test_hopping_windows_overlap() -> None:
    chain = run(summed(TimeWindows.of_size_with_no_grace(10).advance_by(5), store(10)), [("a", 1, 7)])
    assert chain.changes() == [(at("a", 0, 10), 1, None, 7), (at("a", 5, 15), 1, None, 7)]


def test_record_for_a_window_past_its_grace_is_dropped() -> None:
    chain = run(
        summed(TimeWindows.of_size_and_grace(10, 5), store(10)), [("a", 1, 14), ("a", 2, 3), ("b", 1, 15), ("a", 4, 4)]
    )
    assert [change[:2] for change in chain.changes()] == [
        (at("a", 10, 20), 1),
        (at("a", 0, 10), 2),
        (at("b", 10, 20), 1),
    ]
    assert len(chain.dropped) == 1
    assert "expired window [0, 10)" in chain.dropped[0]


def test_null_keys_are_dropped_but_null_values_are_aggregated() -> None:
    counted = StreamWindowAggregate(
        TimeWindows.of_size_with_no_grace(10), store(10), UPDATE, lambda: 0, lambda _key, _value, count: count + 1
    )
    chain = run(counted, [(None, 1, 3), ("a", None, 3)])
    assert chain.changes() == [(at("a", 0, 10), 1, None, 3)]
    assert chain.dropped == ["null key"]


def test_final_result_is_emitted_once_when_the_window_closes() -> None:
    table = summed(TimeWindows.of_size_with_no_grace(10), store(10).with_time_order(), CLOSE)
    chain = OperatorChain(table)
    chain.pipe("b", 1, 3)
    chain.pipe("a", 2, 8)
    chain.pipe("b", 4, 5)
    assert chain.changes() == []
    chain.pipe("a", 8, 10, (("trace", b"1"),))
    records = chain.records()
    assert [(r.key, r.value.new_value, r.timestamp) for r in records] == [
        (at("a", 0, 10), 2, 8),
        (at("b", 0, 10), 5, 5),
    ]
    assert {r.headers for r in records} == {(("trace", b"1"),)}
    chain.pipe("a", 16, 19)
    assert chain.changes() == []
    chain.pipe("c", 1, 45)
    assert chain.changes() == [(at("a", 10, 20), 24, None, 19)]


def test_emission_waits_for_the_emit_interval() -> None:
    task = MemoryTask()
    task.emit_interval_ms = 1_000
    chain = OperatorChain(summed(TimeWindows.of_size_with_no_grace(10), store(10).with_time_order(), CLOSE), task=task)
    chain.pipe("a", 1, 3)
    chain.pipe("a", 2, 13)
    assert chain.changes() == []
    task.wall_clock_ms = 1_000
    chain.pipe("a", 4, 14)
    assert chain.changes() == [(at("a", 0, 10), 1, None, 3)]


def test_close_time_of_the_last_emission_survives_a_restart() -> None:
    table = summed(TimeWindows.of_size_with_no_grace(10), store(10).with_time_order(), CLOSE)
    chain = OperatorChain(table)
    chain.pipe("a", 1, 3)
    chain.pipe("a", 2, 13)
    assert chain.task.metadata == {"windows": 13}
    restarted = OperatorChain(table, task=chain.task)
    restarted.pipe("a", 4, 14)
    assert restarted.changes() == []


def test_unlimited_window_starts_at_its_start_and_never_closes() -> None:
    chain = run(summed(UnlimitedWindows.of().start_on(5), store(10)), [("a", 1, 4), ("a", 2, 5), ("a", 3, 5_000_000)])
    changes = chain.changes()
    assert [(key.window.start, key.window.end, new) for key, new, _old, _timestamp in changes] == [
        (5, MAX_TIMESTAMP, 2),
        (5, MAX_TIMESTAMP, 5),
    ]
    assert chain.dropped == []


def test_unlimited_windows_have_no_final_results() -> None:
    with pytest.raises(ValueError, match="ON_WINDOW_CLOSE"):
        summed(UnlimitedWindows.of(), store(10), CLOSE)


def test_cache_forwards_windows_when_it_is_flushed() -> None:
    builder = store(10).with_caching(True)
    chain = OperatorChain(
        summed(TimeWindows.of_size_and_grace(10, 100), builder), task=MemoryTask(cache_bytes=1_000_000)
    )
    values: list[tuple[Any, int, int]] = [("a", 1, 3), ("a", 2, 9), ("a", 4, 10)]
    for key, value, timestamp in values:
        chain.pipe(key, value, timestamp)
    assert chain.changes() == []
    chain.flush()
    assert chain.changes() == [(at("a", 0, 10), 3, None, 9), (at("a", 10, 20), 4, None, 10)]
