"""Latencies in the slots of an HDR histogram."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker.client import LatencyHistogram
from pybroker_spark.audit.latencies import Latencies, slots_of


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**9)))
def test_a_latency_is_exact_to_three_digits(latencies_us: list[int]) -> None:
    slots = slots_of(np.array(latencies_us, np.int64)).tolist()
    assert all(
        slot <= latency < max(slot + 1, slot * 1.001 + 1) for slot, latency in zip(slots, latencies_us, strict=True)
    )


@settings(deadline=None)
@given(st.lists(st.integers(-5, 10**7), min_size=1, max_size=50), st.integers(0, 50))
def test_latencies_that_are_merged_are_those_of_the_union(latencies_us: list[int], cut: int) -> None:
    array = np.array(latencies_us, np.int64)
    whole, front, back = Latencies(), Latencies(), Latencies()
    whole.add(array)
    front.add(array[:cut])
    back.add(array[cut:])
    front.merge(back)
    assert (front.slots.tolist(), front.counts.tolist()) == (whole.slots.tolist(), whole.counts.tolist())
    assert front.negative == whole.negative == sum(1 for latency in latencies_us if latency < 0)


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**8), min_size=1, max_size=50))
def test_percentiles_are_those_of_a_histogram_that_saw_every_latency(latencies_us: list[int]) -> None:
    latencies, plain = Latencies(), LatencyHistogram()
    latencies.add(np.array(latencies_us, np.int64))
    for latency in latencies_us:
        plain.record(latency, 1)
    found = latencies.histogram()
    assert found.count == plain.count
    assert [found.at_quantile(q) for q in (0, 0.5, 0.99, 1)] == [plain.at_quantile(q) for q in (0, 0.5, 0.99, 1)]
