"""What the audit counts, against a naive twin that looks at every sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker_spark.audit.intervals import Intervals
from pybroker_spark.audit.sequences import Sequences

STREAMS = st.one_of(
    st.lists(st.integers(0, 40), max_size=60),
    # What a log looks like: counting up, with pieces left out and repeated.
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 30)), max_size=8).map(
        lambda runs: [first + step for first, count in runs for step in range(count)]
    ),
)


def numbers(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def members(found: Intervals) -> set[int]:
    return {number for first, last in found.tolist() for number in range(first, last + 1)}


def naive(stream: list[int], expected: int | None = None) -> tuple[int, int, set[int]]:
    """(duplicated, reordered, lost) by looking at one record after the other."""
    seen: set[int] = set()
    duplicated = reordered = 0
    for sequence in stream:
        if sequence in seen:
            duplicated += 1
        elif seen and sequence < max(seen):
            reordered += 1
        seen.add(sequence)
    end = max(max(seen, default=-1) + 1, expected or 0)
    return duplicated, reordered, set(range(end)) - seen


@settings(deadline=None)
@given(STREAMS, st.lists(st.integers(0, 60), max_size=5), st.integers(0, 80))
def test_pieces_of_a_stream_count_what_a_naive_look_counts(stream: list[int], cuts: list[int], expected: int) -> None:
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)})
    pieces = [stream[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    whole = Sequences()
    for piece in pieces:
        whole = whole.then(Sequences.of(numbers(piece)))
    duplicated, reordered, lost = naive(stream, expected)
    assert (whole.records, whole.duplicated, whole.reordered) == (len(stream), duplicated, reordered)
    assert members(whole.seen) == set(stream)
    assert members(whole.lost(expected)) == lost
    assert whole.unsent(expected) == sum(1 for sequence in set(stream) if sequence >= expected)


@settings(deadline=None)
@given(STREAMS, STREAMS, STREAMS)
def test_merging_is_associative(one: list[int], two: list[int], three: list[int]) -> None:
    a, b, c = (Sequences.of(numbers(stream)) for stream in (one, two, three))
    left, right = a.then(b).then(c), a.then(b.then(c))
    assert left.records == right.records
    assert left.seen.tolist() == right.seen.tolist()
    assert left.risen.tolist() == right.risen.tolist()


@pytest.mark.parametrize("count", [1, 10_000])
def test_a_stream_in_order_takes_one_interval(count: int) -> None:
    whole = Sequences.of(np.arange(count)).then(Sequences.of(np.arange(count, 2 * count)))
    assert whole.seen.tolist() == whole.risen.tolist() == [[0, 2 * count - 1]]
