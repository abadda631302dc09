"""A schedule is its seed's, and every kind of fault has its turn."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.faults import Kind, schedule


@given(st.integers(0, 1 << 31), st.integers(1, 5))
def test_a_seed_gives_the_same_faults(seed: int, brokers: int) -> None:
    numbers = range(1, brokers + 1)
    one, other = (list(itertools.islice(schedule(seed, numbers, list(Kind)), 30)) for _ in range(2))
    assert one == other
    assert {fault.kind for fault in one[: len(Kind)]} == set(Kind)
    assert all(sorted(fault.brokers) == list(numbers) for fault in one)
