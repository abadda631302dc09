"""Quotas of partition mutations against Kafka's own classes, request after request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pybroker.metadata.quotas import ClientQuotasImage, quota_entity
from pybroker.security.mutation_quotas import KEY, MutationQuotas
from tests.support import java_oracle
from tests.support.java_oracle import JavaOracle

pytestmark = pytest.mark.java

Request = tuple[int, bool, list[int]]
"""Eighths of a second since the one before, whether the client is strict, and partitions one after the other."""
requests = st.lists(
    st.tuples(st.integers(0, 72), st.booleans(), st.lists(st.integers(1, 40), min_size=1, max_size=4)),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def oracle() -> Iterator[JavaOracle]:
    with java_oracle.running("QuotaOracle") as running:
        yield running


@settings(max_examples=150, deadline=None)
@given(rate=st.integers(1, 160), samples=st.integers(1, 12), sample_s=st.integers(1, 3), made=requests)
@example(rate=128, samples=1, sample_s=1, made=[(0, False, [17]), (0, True, [1])])  # half of a millisecond
def test_what_is_accepted_and_how_long_a_client_waits_is_kafkas(
    oracle: JavaOracle, rate: int, samples: int, sample_s: int, made: list[Request]
) -> None:
    """`rate` is in eighths of a partition a second: sums of such numbers are exact."""
    quotas = ClientQuotasImage(by_entity={quota_entity([("user", "ann")]): {KEY: rate / 8}})
    # At first Kafka refills a bucket for the time since 1970.
    buckets, now, requested, ours = MutationQuotas(samples, sample_s), 1_700_000_000_000, [], []
    for after, is_strict, takes in made:
        now += 125 * after
        requested.append([now, is_strict, *takes])
        charge = buckets.charge(quotas, "ann", "c", now / 1000, is_strict=is_strict)
        assert charge is not None
        accepted = [charge.take(partitions) for partitions in takes]
        ours.append({"accepted": accepted, "wait": charge.wait_ms})
    theirs = oracle.query("mutations", rate=rate / 8, samples=samples, sampleMs=1000 * sample_s, requests=requested)
    for place, (mine, kafkas) in enumerate(zip(ours, theirs["requests"], strict=True)):
        assert mine["accepted"] == kafkas["accepted"], place
        assert mine["wait"] == kafkas["wait"], place
