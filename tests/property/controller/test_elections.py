"""Changes of partitions and their elections: what holds of every result, and that it is Kafka's own, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pybroker.controller.cluster.elections import Election, ElectionRules, elect
from pybroker.controller.cluster.partition_changes import build_change
from pybroker.metadata.features import RECORD_VERSIONS
from pybroker.metadata.image import NO_LEADER, PartitionImage, TopicsImage
from pybroker.metadata.topics_delta import TopicsDelta
from pybroker.protocol.messages.records.partition import PartitionRecord
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
from pybroker.protocol.messages.records.topic import TopicRecord
from tests.support import java_oracle

BROKERS = st.sets(st.integers(0, 4))
ELECTIONS = st.sampled_from(Election)
TOPIC = b"t" * 16
RULES = st.builds(ElectionRules, st.integers(1, 3), st.booleans(), st.booleans())


@st.composite
def partitions(draw: st.DrawFn, *, eligible: bool = False) -> PartitionImage:
    """A partition as a cluster can have it; with `eligible` nobody need be in sync."""
    replicas = draw(st.permutations(range(5)))[: draw(st.integers(1, 5))]
    isr = draw(st.lists(st.sampled_from(replicas), min_size=0 if eligible else 1, unique=True))
    others = [replica for replica in replicas if replica not in isr]
    elr = draw(st.lists(st.sampled_from(others), unique=True)) if eligible and others else []
    leader = draw(st.sampled_from([NO_LEADER, *isr]))
    has_last = eligible and leader == NO_LEADER
    return PartitionImage(
        leader=leader,
        leader_epoch=7,
        partition_epoch=9,
        replicas=tuple(replicas),
        isr=tuple(isr),
        leader_recovery_state=draw(st.integers(0, 1)),
        eligible_leader_replicas=tuple(sorted(elr)),
        last_known_elr=tuple(draw(st.lists(st.sampled_from(replicas), max_size=1))) if has_last else (),
    )


def among(brokers: set[int]) -> Callable[[int, bytes], bool]:
    return lambda broker, _directory: broker in brokers


def changed(partition: PartitionImage, change: PartitionChangeRecord | None) -> PartitionImage:
    """The partition after the change, as every broker applies it."""
    if change is None:
        return partition
    delta = TopicsDelta(TopicsImage())
    delta.apply_topic(TopicRecord(name="t", topic_id=TOPIC))
    delta.apply_partition(
        PartitionRecord(
            partition_id=3,
            topic_id=TOPIC,
            replicas=list(partition.replicas),
            isr=list(partition.isr),
            leader=partition.leader,
            leader_recovery_state=partition.leader_recovery_state,
            eligible_leader_replicas=list(partition.eligible_leader_replicas),
            last_known_elr=list(partition.last_known_elr),
        )
    )
    delta.apply_partition_change(change)
    return delta.changed[TOPIC][3]


@given(
    partition=partitions() | partitions(eligible=True),
    removed=st.none() | st.integers(0, 4),
    lost=st.booleans(),
    rules=RULES,
    election=st.none() | ELECTIONS,
    usable=BROKERS,
)
def test_a_change_never_names_a_leader_that_could_lose_records_unless_it_is_unclean(
    partition: PartitionImage,
    removed: int | None,
    lost: bool,
    rules: ElectionRules,
    election: Election | None,
    usable: set[int],
) -> None:
    isr = tuple(replica for replica in partition.isr if replica != removed)
    wanted = msgspec.structs.replace(partition, isr=isr)
    usable = usable - {removed}
    change = build_change(
        TOPIC,
        3,
        partition,
        wanted,
        usable=among(usable),
        rules=rules,
        election=election,
        lost=(removed,) if lost and removed is not None else (),
    )
    after = changed(partition, change)
    assert set(after.isr) <= set(after.replicas)
    assert not set(after.isr) & set(after.eligible_leader_replicas)
    if change is None:
        return
    if not rules.has_eligible_replicas:
        assert after.isr or not partition.isr
    if after.leader == NO_LEADER:
        return
    assert after.leader in usable
    assert after.leader in after.isr
    safe = {*partition.isr, *partition.eligible_leader_replicas}
    if after.leader not in safe:
        assert after.isr == (after.leader,)
        assert after.leader_recovery_state == 1
        assert after.eligible_leader_replicas == ()


@given(partition=partitions(), usable=BROKERS)
def test_the_preferred_leader_leads_when_it_can(partition: PartitionImage, usable: set[int]) -> None:
    leader, _ = elect(partition, among(usable), Election.PREFERRED)
    first = partition.replicas[0]
    assert (leader == first) == (first in partition.isr and first in usable)


@given(partition=partitions() | partitions(eligible=True), usable=BROKERS, election=ELECTIONS)
def test_an_election_is_the_naive_one(partition: PartitionImage, usable: set[int], election: Election) -> None:
    order = [partition.leader, *partition.replicas]
    if election is Election.PREFERRED:
        order.insert(0, partition.replicas[0])
    clean = set(partition.isr or partition.eligible_leader_replicas) & usable
    expected = [(one, False) for one in order if one in clean]
    if election is Election.UNCLEAN:
        expected += [(one, True) for one in partition.replicas if one in usable]
    assert tuple(elect(partition, among(usable), election)) == [*expected, (NO_LEADER, False)][0]


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("ElectionOracle") as running:
        yield running


@pytest.mark.java
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    partition=partitions() | partitions(eligible=True),
    removed=st.none() | st.integers(0, 4),
    lost=st.booleans(),
    min_isr=st.integers(1, 3),
    keeps=st.booleans(),
    election=ELECTIONS,
    usable=BROKERS,
)
def test_the_change_is_kafkas(
    oracle: java_oracle.JavaOracle,
    partition: PartitionImage,
    removed: int | None,
    lost: bool,
    min_isr: int,
    keeps: bool,
    election: Election,
    usable: set[int],
) -> None:
    isr = tuple(replica for replica in partition.isr if replica != removed)
    # Kafka forgets who could lead a partition without an ISR when the feature goes; here it may lead yet.
    assume(keeps or isr or not partition.eligible_leader_replicas)
    is_lost = (removed,) if lost and removed is not None else ()
    usable = usable - {removed}
    ours = build_change(
        TOPIC,
        0,
        partition,
        msgspec.structs.replace(partition, isr=isr),
        usable=among(usable),
        rules=ElectionRules(min_isr, keeps),
        election=election,
        lost=is_lost,
    )
    theirs = oracle.query(
        election.name,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        elr=list(partition.eligible_leader_replicas),
        lastKnown=list(partition.last_known_elr),
        targetIsr=list(isr),
        lost=list(is_lost),
        minIsr=min_isr,
        keepsElr=keeps,
        leader=partition.leader,
        recovery=partition.leader_recovery_state,
        usable=sorted(usable),
    )
    assert theirs == (
        {}
        if ours is None
        else {
            "leader": ours.leader,
            "recovery": ours.leader_recovery_state,
            "isr": ours.isr,
            "elr": ours.eligible_leader_replicas,
            "lastKnown": ours.last_known_elr,
            "version": RECORD_VERSIONS["PartitionChangeRecord"],
        }
    )
