"""Aggregations over sliding windows."""

from collections.abc import Sequence
from itertools import permutations

import pytest

from pybroker.streams.operators.sliding_aggregation import StreamSlidingWindowAggregate
from pybroker.streams.serdes import JSON
from pybroker.streams.state.builders import timestamped_window_store
from pybroker.streams.windows import EmitStrategy, SlidingWindows, TimeWindow, Windowed
from tests.support.streams import OperatorChain, run

Event = tuple[str, int, int]


def collected(
    difference_ms: int, grace_ms: int, emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE
) -> StreamSlidingWindowAggregate:
    builder = timestamped_window_store("windows", 86_400_000, difference_ms, value_serde=JSON)
    if emit.on_window_close:
        builder = builder.with_time_order()
    return StreamSlidingWindowAggregate(
        SlidingWindows.of_time_difference_and_grace(difference_ms, grace_ms),
        builder,
        emit,
        list,
        lambda _key, value, values: sorted([*values, value]),
    )


def contents(chain: OperatorChain) -> dict[int, list[int]]:
    """Return the last value of each window by its start."""
    return {key.window.start: new for key, new, _old, _timestamp in chain.changes()}


def expected(events: Sequence[Event], difference_ms: int) -> dict[int, list[int]]:
    """Return the windows that the definition in KIP-450 requires, by their start."""
    times = {timestamp for _key, _value, timestamp in events}
    starts = {max(0, time - difference_ms) for time in times} | {time + 1 for time in times}
    windows = {
        start: sorted(value for _key, value, time in events if start <= time <= start + difference_ms)
        for start in starts
    }
    return {start: values for start, values in windows.items() if values}


def test_example_of_the_documentation() -> None:
    chain = run(collected(5_000, 0), [("key", 1, 8_000), ("key", 2, 9_200), ("key", 3, 12_400)])
    assert contents(chain) == {3_000: [1], 4_200: [1, 2], 7_400: [1, 2, 3], 8_001: [2, 3], 9_201: [3]}


@pytest.mark.parametrize("times", [(20, 23, 27, 40), (2, 4, 9, 15), (0, 10, 11, 21), (30, 30, 35, 41), (3, 3, 8, 13)])
def test_order_of_records_does_not_change_the_windows(times: tuple[int, ...]) -> None:
    for order in permutations(enumerate(times)):
        events = [("key", value, time) for value, time in order]
        assert contents(run(collected(10, 1_000), events)) == expected(events, 10), events


def test_records_without_key_or_value_are_dropped() -> None:
    chain = run(collected(10, 0), [(None, 1, 20), ("key", None, 20)])
    assert chain.changes() == []
    assert chain.dropped == ["null key or value", "null key or value"]


def test_record_is_dropped_only_from_windows_that_are_closed() -> None:
    chain = run(collected(10, 5), [("key", 1, 40), ("key", 2, 30), ("key", 3, 24)])
    # At 40 windows that end before 35 are closed: the left window of 30 is closed, its right window is open.
    assert contents(chain) == {30: [1, 2], 31: [1]}
    assert any("expired window [20, 30]" in reason for reason in chain.dropped)
    assert any("expired window [24, 34]" in reason for reason in chain.dropped)


def test_final_result_is_emitted_when_the_window_closes() -> None:
    chain = OperatorChain(collected(10, 0, EmitStrategy.ON_WINDOW_CLOSE))
    chain.pipe("key", 1, 20)
    chain.pipe("key", 2, 25)
    # The window [10, 20] is closed because stream time is later than its inclusive end.
    assert chain.changes() == [(Windowed("key", TimeWindow(10, 20)), [1], None, 20)]
    chain.pipe("key", 3, 60)
    assert [(key.window.start, new) for key, new, _old, _time in chain.changes()] == [(15, [1, 2]), (21, [2])]


def test_early_record_emits_no_closed_windows() -> None:
    chain = OperatorChain(collected(10, 0, EmitStrategy.ON_WINDOW_CLOSE))
    chain.pipe("key", 1, 3)
    chain.pipe("key", 2, 9)
    assert chain.changes() == []
    chain.pipe("key", 3, 30)
    assert [(key.window.start, new) for key, new, _old, _time in chain.changes()] == [(0, [1, 2]), (4, [2])]
