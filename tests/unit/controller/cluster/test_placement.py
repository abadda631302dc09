"""Replicas are spread: over brokers, over racks, over leaders."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybroker.controller.cluster.placement import PlacementError, place
from pybroker.metadata.image import BrokerRegistration


def broker(number: int, rack: str | None = None, *, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(
        id=number, incarnation_id=b"", epoch=0, listeners={}, security_protocols={}, rack=rack, fenced=fenced
    )


def brokers(*some: BrokerRegistration) -> dict[int, BrokerRegistration]:
    return {one.id: one for one in some}


@given(
    count=st.integers(1, 8),
    fenced=st.integers(0, 3),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 11),
    seed=st.integers(0, 2**32),
)
def test_replicas_are_distinct_leaders_are_usable_and_evenly_spread(
    count: int, fenced: int, partitions: int, factor: int, seed: int
) -> None:
    there = brokers(*[broker(n) for n in range(count)], *[broker(100 + n, fenced=True) for n in range(fenced)])
    if factor > len(there):
        with pytest.raises(PlacementError, match="cannot be reached"):
            place(there, partitions, factor, seed)
        return
    placed = place(there, partitions, factor, seed)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(replicas) == len(set(replicas)) == factor
        assert sum(replica < 100 for replica in replicas) == min(factor, count)
        assert replicas[0] < 100
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.get(n, 0) for n in range(count)) <= 1


@given(seed=st.integers(0, 1000))
def test_consecutive_partitions_have_leaders_in_different_racks(seed: int) -> None:
    there = brokers(*[broker(n, "ab"[n % 2]) for n in range(4)])
    leaders = [replicas[0] % 2 for replicas in place(there, 8, 1, seed)]
    assert all(one != other for one, other in pairwise(leaders))


def test_without_a_usable_broker_nothing_is_placed() -> None:
    with pytest.raises(PlacementError, match=r"All brokers are currently fenced\."):
        place(brokers(broker(1, fenced=True)), 1, 1, 0)
