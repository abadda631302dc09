"""The hash of a group's topics is Kafka's, byte for byte (KIP-1101)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group.modern.topic_hash import group_hash, topic_hash
from tests.support import group_oracle

RACKS = st.lists(st.lists(st.sampled_from(["r1", "r2", "rack-of-a-longer-name", "ü"]), max_size=3), max_size=4)
TOPICS = st.dictionaries(
    st.text(min_size=1, max_size=12), st.tuples(st.binary(min_size=16, max_size=16), RACKS), max_size=4
)


def test_a_group_without_topics_has_the_hash_zero() -> None:
    assert group_hash({}) == 0


@given(TOPICS)
def test_order_matters_neither_for_topics_nor_for_racks(topics: dict[str, tuple[bytes, list[list[str]]]]) -> None:
    hashes = {name: topic_hash(name, topic_id, racks) for name, (topic_id, racks) in topics.items()}
    turned = {
        name: topic_hash(name, topic_id, [list(reversed(of)) for of in racks])
        for name, (topic_id, racks) in reversed(topics.items())
    }
    assert group_hash(hashes) == group_hash(turned)


@pytest.fixture(scope="module")
def oracle() -> Iterator[group_oracle.GroupOracle]:
    with group_oracle.running() as running:
        yield running


@pytest.mark.java
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(topics=TOPICS)
def test_the_hash_is_kafkas(oracle: group_oracle.GroupOracle, topics: dict[str, tuple[bytes, list[list[str]]]]) -> None:
    reported = [{"name": name, "id": topic_id.hex(), "racks": racks} for name, (topic_id, racks) in topics.items()]
    theirs = oracle.query("hash", topics=reported)
    hashes = {name: topic_hash(name, topic_id, racks) for name, (topic_id, racks) in topics.items()}
    assert {name: str(number) for name, number in hashes.items()} == theirs.get("topics", {})
    assert str(group_hash(hashes)) == theirs["group"]
