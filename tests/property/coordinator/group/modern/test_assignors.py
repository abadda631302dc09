"""The server-side assignors: what holds of every result, and that it is Kafka's own, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group.modern.assignors import ASSIGNORS
from pybroker.coordinator.group.modern.assignors.spec import Assigned, GroupSpec, MemberSpec, topic_order
from tests.support import group_oracle

# Kafka goes through topics as a hash set does. Where all members want the same, that decides who gets what is free:
# ids below 16 stand in such a set in their own order.
SMALL_IDS = [number.to_bytes(16, "big") for number in range(8)]


@st.composite
def groups(draw: st.DrawFn, *, homogeneous: bool) -> GroupSpec:
    """Any group, whose members have any part of their topics' partitions, and of topics they do not want any more."""
    topics = draw(
        st.lists(st.sampled_from(SMALL_IDS), unique=True, max_size=6)
        if homogeneous
        else st.lists(st.binary(min_size=16, max_size=16), unique=True, max_size=6)
    )
    partitions = {topic: draw(st.sampled_from([0, 1, 2, 3, 5, 8, 13, 30])) for topic in topics}
    ids = draw(st.lists(st.text("abxyz09", min_size=1, max_size=4), unique=True, min_size=1, max_size=9))
    common = draw(_some_of(topics))
    wants = {member_id: common if homogeneous else draw(_some_of(topics)) for member_id in ids}
    crowd = ids[: draw(st.integers(1, len(ids)))]
    has: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in ids}
    for topic in topics:
        for partition in range(partitions[topic]):
            owner = draw(st.sampled_from([None, *crowd]))
            if owner is not None:
                has[owner].setdefault(topic, set()).add(partition)
    instances = st.none() | st.text("abxyz09", min_size=1, max_size=4)
    names = [draw(instances) for _ in ids]
    members = {
        member_id: MemberSpec(
            wants[member_id],
            {topic: frozenset(has[member_id][topic]) for topic in sorted(has[member_id], key=topic_order)},
            name if names.count(name) == 1 else None,
        )
        for member_id, name in zip(ids, names, strict=True)
    }
    return GroupSpec(members, partitions, homogeneous)


def _some_of(topics: list[bytes]) -> st.SearchStrategy[frozenset[bytes]]:
    return st.frozensets(st.sampled_from(topics)) if topics else st.just(frozenset())


ANY_GROUP = groups(homogeneous=True) | groups(homogeneous=False)


def _sizes(result: dict[str, Assigned]) -> dict[str, int]:
    return {member_id: sum(map(len, assigned.values())) for member_id, assigned in result.items()}


@pytest.mark.parametrize("name", ASSIGNORS)
@given(spec=ANY_GROUP)
def test_every_partition_goes_to_one_subscriber(name: str, spec: GroupSpec) -> None:
    given_out = [
        (topic, partition, topic in spec.members[member_id].topics)
        for member_id, assigned in ASSIGNORS[name](spec).items()
        for topic, partitions in assigned.items()
        for partition in partitions
    ]
    wanted = frozenset[bytes]().union(*(member.topics for member in spec.members.values()))
    assert sorted(given_out) == [(t, p, True) for t in sorted(wanted) for p in range(spec.partitions[t])]


@given(groups(homogeneous=True))
def test_uniform_gives_members_with_the_same_topics_the_same_number_up_to_one(spec: GroupSpec) -> None:
    sizes = list(_sizes(ASSIGNORS["uniform"](spec)).values())
    assert not sizes or max(sizes) - min(sizes) <= 1


@given(groups(homogeneous=True))
def test_uniform_moves_nothing_within_a_quota(spec: GroupSpec) -> None:
    result = ASSIGNORS["uniform"](spec)
    least = min(_sizes(result).values(), default=0)
    for member_id, member in spec.members.items():
        had = {(t, p) for t, partitions in member.assigned.items() for p in partitions if t in member.topics}
        has = {(t, p) for t, partitions in result.get(member_id, {}).items() for p in partitions}
        assert len(had & has) >= min(len(had), least)


@given(ANY_GROUP)
def test_uniform_leaves_its_own_result_alone(spec: GroupSpec) -> None:
    once = ASSIGNORS["uniform"](spec)
    again = spec._replace(
        members={
            member_id: member._replace(assigned=once.get(member_id, {})) for member_id, member in spec.members.items()
        }
    )
    assert ASSIGNORS["uniform"](again) == once


@given(ANY_GROUP)
def test_range_deals_out_neighbours_by_counting(spec: GroupSpec) -> None:
    result = ASSIGNORS["range"](spec)
    order = sorted(spec.members, key=lambda m: (spec.members[m].instance_id is None, spec.members[m].instance_id or m))
    for topic in spec.partitions:
        readers = [member_id for member_id in order if topic in spec.members[member_id].topics]
        sizes = [0] * len(readers)
        for partition in range(spec.partitions[topic] if readers else 0):
            sizes[partition % len(readers)] += 1
        dealt = iter(range(spec.partitions[topic]))
        for member_id, size in zip(readers, sizes, strict=True):
            assert result[member_id].get(topic, frozenset()) == {next(dealt) for _ in range(size)}


@pytest.fixture(scope="module")
def oracle() -> Iterator[group_oracle.GroupOracle]:
    with group_oracle.running() as running:
        yield running


@pytest.mark.java
@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=ANY_GROUP)
def test_the_result_is_kafkas(name: str, oracle: group_oracle.GroupOracle, spec: GroupSpec) -> None:
    theirs = oracle.query(
        "assign",
        assignor=name,
        homogeneous=spec.homogeneous,
        partitions={topic.hex(): count for topic, count in spec.partitions.items()},
        members=[
            {
                "id": member_id,
                "instance": member.instance_id,
                "topics": [topic.hex() for topic in sorted(member.topics, key=topic_order)],
                "assigned": {topic.hex(): sorted(partitions) for topic, partitions in member.assigned.items()},
            }
            for member_id, member in spec.members.items()
        ],
    )
    ours = {
        member_id: {topic.hex(): sorted(partitions) for topic, partitions in assigned.items()}
        for member_id, assigned in ASSIGNORS[name](spec).items()
    }
    # Who gets nothing is in the one result with nothing, and in the other not at all.
    assert {member_id: assigned for member_id, assigned in ours.items() if assigned} == {
        member_id: assigned for member_id, assigned in theirs.items() if assigned
    }
