from __future__ import annotations

from pybroker.metrics.durations import BOUNDS, Durations


def test_a_duration_counts_below_each_bound_that_is_longer() -> None:
    durations = Durations()
    microseconds = [0, 15, 16, 17, 1_000, 67_000_000, 68_000_000, 10**12]
    for one in microseconds:
        durations.note(one * 1000 + 999)
    found = durations.histogram()
    for bound, below in zip(found.bounds, found.cumulative, strict=False):
        assert below == sum(one < round(bound * 1e6) for one in microseconds), bound
    assert found.cumulative[-1] == len(microseconds)
    assert len(found.cumulative) == len(BOUNDS) + 1
    assert found.total == sum(one * 1000 + 999 for one in microseconds) / 1e9
