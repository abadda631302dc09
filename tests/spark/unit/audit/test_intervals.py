"""Sets of intervals, against Python's sets."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker_spark.audit import intervals
from pybroker_spark.audit.intervals import Intervals

SETS = st.sets(st.integers(0, 60))


def numbers(values: set[int]) -> np.ndarray:
    return np.array(sorted(values), np.int64)


def members(found: Intervals) -> set[int]:
    spans = found.tolist()
    assert all(a <= b for a, b in spans)
    assert all(one[1] + 1 < other[0] for one, other in itertools.pairwise(spans)), "gaps lie between intervals"
    return {number for first, last in spans for number in range(first, last + 1)}


@settings(deadline=None)
@given(SETS, SETS, st.integers(-1, 61))
def test_sets_of_intervals_are_sets(one: set[int], other: set[int], bound: int) -> None:
    here, there = intervals.of_sorted(numbers(one)), intervals.of_sorted(numbers(other))
    assert members(here) == one
    assert intervals.size(here) == len(one)
    assert members(intervals.union(here, there)) == one | other
    assert members(intervals.common(here, there)) == one & other
    assert members(intervals.above(here, bound)) == {number for number in one if number > bound}
    assert members(intervals.gaps(here, max(one, default=-1) + 3)) == set(range(max(one, default=-1) + 3)) - one
    requested = np.arange(62)
    assert intervals.contain(here, requested).tolist() == [number in one for number in range(62)]
