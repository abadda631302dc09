"""Reassignments: they come to their end or find back, and they are Kafka's own, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.controller.cluster.elections import DEFAULT_RULES
from pybroker.controller.cluster.partition_changes import build_change
from pybroker.controller.cluster.reassignments import (
    Assignment,
    plan_cancellation,
    plan_reassignment,
    replication_factor,
    to_be,
)
from pybroker.metadata.image import NO_LEADER, PartitionImage
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
from tests.support import java_oracle

BROKERS = st.sets(st.integers(0, 4))
TARGETS = st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True)


@st.composite
def partitions(draw: st.DrawFn, *, reassigned: bool = False) -> PartitionImage:
    """A partition, and a reassignment on its way where one is wanted; its directories are its brokers' numbers."""
    standing = draw(TARGETS)
    partition = with_leader(draw, Assignment(tuple(standing), in_sync(draw, standing)))
    if reassigned:
        begun = plan_reassignment(partition, draw(TARGETS))
        partition = with_leader(draw, begun._replace(isr=in_sync(draw, begun.replicas)))
    return partition


def in_sync(draw: st.DrawFn, replicas: Sequence[int]) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True)))


def with_leader(draw: st.DrawFn, to: Assignment) -> PartitionImage:
    return after(draw(st.sampled_from([NO_LEADER, *to.isr])), to)


def after(leader: int, to: Assignment) -> PartitionImage:
    return PartitionImage(
        leader=leader,
        leader_epoch=7,
        partition_epoch=9,
        replicas=to.replicas,
        isr=to.isr,
        directories=tuple(map(directory, to.replicas)),
        adding_replicas=to.adding,
        removing_replicas=to.removing,
    )


def directory(broker: int) -> bytes:
    return (100 + broker).to_bytes(16)


def change(partition: PartitionImage, to: Assignment, usable: set[int]) -> PartitionChangeRecord | None:
    return build_change(
        b"t" * 16,
        3,
        partition,
        to_be(partition, to, directory),
        usable=lambda broker, _: broker in usable,
        rules=DEFAULT_RULES,
    )


@given(partition=partitions() | partitions(reassigned=True), target=TARGETS)
def test_what_is_on_its_way_ends_at_its_target_once_that_is_in_sync(
    partition: PartitionImage, target: list[int]
) -> None:
    begun = plan_reassignment(partition, target)
    assert begun.replicas[: len(target)] == tuple(target)
    assert replication_factor(after(NO_LEADER, begun)) == len(target)
    synced = msgspec.structs.replace(after(NO_LEADER, begun), isr=begun.replicas)
    assert plan_reassignment(synced, target) == Assignment(tuple(target), tuple(target))


@given(partition=partitions() | partitions(reassigned=True), target=TARGETS)
def test_the_same_again_plans_the_same(partition: PartitionImage, target: list[int]) -> None:
    begun = plan_reassignment(partition, target)
    assert plan_reassignment(after(NO_LEADER, begun), target) == begun


@given(partition=partitions(), targets=st.lists(TARGETS, min_size=1, max_size=3))
def test_a_cancellation_finds_the_replicas_of_before(partition: PartitionImage, targets: list[list[int]]) -> None:
    now = partition
    for target in targets:
        now = after(now.leader, plan_reassignment(now, target))
        if not (now.adding_replicas or now.removing_replicas):
            return
    found = plan_cancellation(now)
    assert set(found.replicas) == set(partition.replicas)
    assert found.isr == partition.isr
    assert (found.adding, found.removing) == ((), ())


@given(partition=partitions() | partitions(reassigned=True), target=TARGETS, usable=BROKERS)
def test_a_change_leaves_a_partition_whole(partition: PartitionImage, target: list[int], usable: set[int]) -> None:
    to = plan_reassignment(partition, target)
    record = change(partition, to, usable)
    assert to.isr
    assert set(to.isr) <= set(to.replicas)
    assert set(to.adding) | set(to.removing) <= set(to.replicas)
    if record is None:
        assert after(partition.leader, to) == partition
        return
    assert (record.topic_id, record.partition_id) == (b"t" * 16, 3)
    leader = partition.leader if record.leader == -2 else record.leader
    assert leader in usable & set(to.isr) or leader == NO_LEADER
    assert change(after(leader, to), to, usable) is None, "it is so"
    if set(partition.replicas) - set(to.replicas):
        assert record.leader != -2, "who lost a replica notices by the epoch"


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("ReassignmentOracle") as running:
        yield running


@pytest.mark.java
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(partition=partitions(), target=TARGETS, usable=BROKERS)
def test_a_reassignment_is_kafkas(
    oracle: java_oracle.JavaOracle, partition: PartitionImage, target: list[int], usable: set[int]
) -> None:
    ours = change(partition, plan_reassignment(partition, target), usable)
    assert query(oracle, "reassign", partition, usable, target=target) == shown(ours)


@pytest.mark.java
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(partition=partitions(reassigned=True), usable=BROKERS)
def test_the_same_again_and_a_cancellation_are_kafkas(
    oracle: java_oracle.JavaOracle, partition: PartitionImage, usable: set[int]
) -> None:
    target = [broker for broker in partition.replicas if broker not in partition.removing_replicas]
    again = change(partition, plan_reassignment(partition, target), usable)
    assert query(oracle, "reassign", partition, usable, target=target) == shown(again)
    before = plan_cancellation(partition)
    cancelled = {"unclean": True} if not before.isr else shown(change(partition, before, usable))
    assert query(oracle, "cancel", partition, usable) == cancelled


def shown(record: PartitionChangeRecord | None) -> dict[str, Any]:
    if record is None:
        return {}
    ids = record.directories
    return {
        "leader": record.leader,
        "isr": record.isr,
        "replicas": record.replicas,
        "adding": record.adding_replicas,
        "removing": record.removing_replicas,
        "directories": None if ids is None else [int.from_bytes(one) - 100 for one in ids],
    }


def query(
    oracle: java_oracle.JavaOracle, what: str, partition: PartitionImage, usable: set[int], **more: Any
) -> dict[str, Any]:
    return oracle.query(
        what,
        replicas=partition.replicas,
        isr=partition.isr,
        adding=partition.adding_replicas,
        removing=partition.removing_replicas,
        leader=partition.leader,
        usable=sorted(usable),
        **more,
    )
