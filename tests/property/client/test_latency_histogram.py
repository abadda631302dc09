"""Histograms of latencies merge exactly: the percentiles of many clients are those of all their records."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybroker.client import LatencyHistogram

LATENCIES = st.lists(st.integers(0, 2 * 600_000_000), max_size=200)


def histogram(latencies_us: list[int]) -> LatencyHistogram:
    made = LatencyHistogram()
    for latency in latencies_us:
        made.record(latency, 1)
    return made


def facts(of: LatencyHistogram) -> tuple[object, ...]:
    return of.count, of.max_us, of.mean_us, [of.at_quantile(q / 1000) for q in range(1001)]


@given(st.lists(LATENCIES, min_size=1, max_size=5))
def test_a_merge_is_the_histogram_of_the_union(clients: list[list[int]]) -> None:
    merged = LatencyHistogram()
    for latencies in clients:
        merged.merge(LatencyHistogram(histogram(latencies).encode()))
    assert facts(merged) == facts(histogram([latency for latencies in clients for latency in latencies]))


@given(st.lists(st.integers(1, 600_000_000), min_size=1, max_size=200), st.integers(1, 100))
def test_a_quantile_is_that_of_the_sorted_latencies_to_three_digits(latencies: list[int], percent: int) -> None:
    expected = sorted(latencies)[math.ceil(len(latencies) * percent / 100) - 1]
    assert histogram(latencies).at_quantile(percent / 100) == pytest.approx(expected, rel=0.001, abs=1)


@given(st.binary(max_size=64))
def test_bytes_that_are_no_histogram_are_refused(encoded: bytes) -> None:
    with pytest.raises(ValueError, match=r"HdrHistogram|a histogram of"):
        LatencyHistogram(encoded)


def test_a_histogram_that_is_merged_with_itself_doubles() -> None:
    made = histogram([5, 7])
    made.merge(made)
    assert (made.count, made.max_us) == (4, 7)
