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


def test_the_books_example_of_six_partitions_on_three_brokers() -> None:
    there = brokers(*[broker(n) for n in (1, 2, 3)])
    start, shift = 1, 2
    assert place(there, 6, 3, start + shift * 3) == [
        (2, 3, 1),
        (3, 1, 2),
        (1, 2, 3),
        (2, 1, 3),
        (3, 2, 1),
        (1, 3, 2),
    ]


RACKS_OF_SIX = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_kip_36s_example_of_six_brokers_in_three_racks() -> None:
    there = brokers(*[broker(n, rack) for n, rack in RACKS_OF_SIX.items()])
    assert place(there, 7, 3, 0) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


RACKS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.booleans()), min_size=1, max_size=9)


@given(some=RACKS, partitions=st.integers(1, 30), factor=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_replicas_are_in_as_many_racks_as_there_can_be(
    some: list[tuple[str | None, bool]], partitions: int, factor: int, seed: int
) -> None:
    there = brokers(*[broker(n, rack, fenced=fenced) for n, (rack, fenced) in enumerate(some)])
    if factor > len(there) or all(fenced for _, fenced in some):
        with pytest.raises(PlacementError):
            place(there, partitions, factor, seed)
        return
    racks = {rack for rack, _ in some}
    for replicas in place(there, partitions, factor, seed):
        assert len(replicas) == len(set(replicas)) == factor
        assert not there[replicas[0]].fenced
        assert len({there[one].rack for one in replicas}) == min(factor, len(racks))
        for one in replicas:
            if there[one].fenced:
                rack = there[one].rack
                able = [other for other in there.values() if other.rack == rack and not other.fenced]
                assert all(other.id in replicas for other in able), "an unfenced one of the rack comes first"


@given(count=st.integers(1, 4), racks=st.integers(1, 4), factor=st.integers(1, 4), seed=st.integers(0, 2**32))
def test_even_racks_share_replicas_evenly(count: int, racks: int, factor: int, seed: int) -> None:
    there = brokers(*[broker(n, f"r{n % racks}") for n in range(count * racks)])
    factor = min(factor, racks)
    placed = place(there, len(there), factor, seed)
    times = Counter(one for replicas in placed for one in replicas)
    assert set(times.values()) == {factor}
