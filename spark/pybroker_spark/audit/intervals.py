"""Sets of integers as intervals, for the sequences that were read. The size depends only on the number of gaps.

A set is an array of shape (n, 2) of first and last (inclusive) numbers, ascending, with gaps between the rows. Pure
functions; the property test of each compares it with a naive implementation.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Intervals: TypeAlias = NDArray[np.int64]

NOTHING: Intervals = np.empty((0, 2), np.int64)


def of_sorted(numbers: NDArray[np.int64]) -> Intervals:
    """Return the set of ascending numbers, which may contain duplicates."""
    if len(numbers) == 0:
        return NOTHING
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts = numbers[np.concatenate(([0], breaks + 1))]
    lasts = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
    return np.stack((firsts, lasts), axis=1)


def size(intervals: Intervals) -> int:
    """Return the number of elements."""
    return int((intervals[:, 1] - intervals[:, 0] + 1).sum())


def union(one: Intervals, other: Intervals) -> Intervals:
    """Return the union of two sets."""
    if len(one) == 0 or len(other) == 0:
        return other if len(one) == 0 else one
    if one[-1, 1] < other[0, 0]:  # the common case: later records have later sequences
        if one[-1, 1] + 1 < other[0, 0]:
            return np.concatenate((one, other))
        joined = np.array([[one[-1, 0], other[0, 1]]])
        return np.concatenate((one[:-1], joined, other[1:]))
    both = np.concatenate((one, other))
    both = both[np.argsort(both[:, 0], kind="stable")]
    reach = np.maximum.accumulate(both[:, 1])
    breaks = np.flatnonzero(both[1:, 0] > reach[:-1] + 1)
    firsts = both[np.concatenate(([0], breaks + 1)), 0]
    lasts = reach[np.concatenate((breaks, [len(both) - 1]))]
    return np.stack((firsts, lasts), axis=1)


def above(intervals: Intervals, bound: int) -> Intervals:
    """Return the elements greater than a bound."""
    kept = intervals[intervals[:, 1] > bound]
    if len(kept) and kept[0, 0] <= bound:
        kept = kept.copy()
        kept[0, 0] = bound + 1
    return kept


def gaps(intervals: Intervals, end: int) -> Intervals:
    """Return the numbers from 0 to below `end` that are not in the set."""
    firsts = np.concatenate(([0], intervals[:, 1] + 1))
    lasts = np.concatenate((intervals[:, 0] - 1, [end - 1]))
    lasts = np.minimum(lasts, end - 1)
    missing = np.stack((firsts, lasts), axis=1)
    return missing[missing[:, 0] <= missing[:, 1]]


def common(one: Intervals, other: Intervals) -> Intervals:
    """Return the intersection of two sets."""
    found = []
    here = there = 0
    while here < len(one) and there < len(other):
        first = max(one[here, 0], other[there, 0])
        last = min(one[here, 1], other[there, 1])
        if first <= last:
            found.append((first, last))
        if one[here, 1] < other[there, 1]:
            here += 1
        else:
            there += 1
    return np.array(found, np.int64).reshape(-1, 2)


def contain(intervals: Intervals, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each number whether the set contains it."""
    if len(intervals) == 0:
        return np.zeros(len(numbers), np.bool_)
    places = np.searchsorted(intervals[:, 0], numbers, side="right") - 1
    found: NDArray[np.bool_] = (places >= 0) & (numbers <= intervals[np.maximum(places, 0), 1])
    return found
