"""Elections that somebody asks for: what holds of every result, and that it is Kafka's own, field by field."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.controller.cluster.elections import elect, elect_as_asked
from pybroker.controller.cluster.events import ElectionType
from pybroker.metadata.features import RECORD_VERSIONS
from pybroker.metadata.image import NO_LEADER, PartitionImage
from tests.support import java_oracle

BROKERS = st.sets(st.integers(0, 4))
TYPES = st.sampled_from(ElectionType)


@st.composite
def partitions(draw: st.DrawFn) -> PartitionImage:
    replicas = draw(st.permutations(range(5)))[: draw(st.integers(1, 5))]
    isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    return PartitionImage(
        leader=draw(st.sampled_from([NO_LEADER, *isr])),
        leader_epoch=7,
        partition_epoch=9,
        replicas=tuple(replicas),
        isr=tuple(isr),
        leader_recovery_state=draw(st.integers(0, 1)),
    )


@given(partition=partitions(), election_type=TYPES, usable=BROKERS)
def test_an_election_changes_the_leader_and_only_an_unclean_one_who_is_in_sync(
    partition: PartitionImage, election_type: ElectionType, usable: set[int]
) -> None:
    change = elect_as_asked(b"t" * 16, 3, partition, election_type, lambda broker, _: broker in usable)
    if change is None:
        return
    assert (change.topic_id, change.partition_id) == (b"t" * 16, 3)
    assert change.leader != partition.leader
    assert change.leader == NO_LEADER or change.leader in usable
    clean = set(partition.isr) & usable
    if clean or election_type is ElectionType.PREFERRED:
        assert change.isr is None
        assert change.leader in {NO_LEADER, *clean}
    elif change.leader != NO_LEADER:
        assert change.isr == [change.leader]


@given(partition=partitions(), usable=BROKERS)
def test_the_preferred_leader_leads_when_it_can(partition: PartitionImage, usable: set[int]) -> None:
    change = elect_as_asked(b"t" * 16, 0, partition, ElectionType.PREFERRED, lambda broker, _: broker in usable)
    leader = partition.leader if change is None else change.leader
    first = partition.replicas[0]
    assert (leader == first) == (first in partition.isr and first in usable)


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("ElectionOracle") as running:
        yield running


@pytest.mark.java
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(partition=partitions(), election_type=TYPES, usable=BROKERS)
def test_the_change_is_kafkas(
    oracle: java_oracle.JavaOracle, partition: PartitionImage, election_type: ElectionType, usable: set[int]
) -> None:
    ours = elect_as_asked(b"t" * 16, 0, partition, election_type, lambda broker, _: broker in usable)
    theirs = ask(oracle, election_type.name, partition, usable)
    assert theirs == (
        {}
        if ours is None
        else {
            "leader": ours.leader,
            "recovery": ours.leader_recovery_state,
            "isr": ours.isr,
            "version": RECORD_VERSIONS["PartitionChangeRecord"],
        }
    )


@pytest.mark.java
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(partition=partitions(), usable=BROKERS)
def test_who_leads_unasked_is_who_leads_in_kafka(
    oracle: java_oracle.JavaOracle, partition: PartitionImage, usable: set[int]
) -> None:
    theirs = ask(oracle, "ONLINE", partition, usable).get("leader", partition.leader)
    assert elect(partition, lambda broker, _: broker in usable) == theirs


def ask(
    oracle: java_oracle.JavaOracle, election: str, partition: PartitionImage, usable: set[int]
) -> dict[str, object]:
    return oracle.ask(
        election,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        leader=partition.leader,
        recovery=partition.leader_recovery_state,
        usable=sorted(usable),
    )
