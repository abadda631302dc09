"""Clean elections: only replicas in sync lead, and the last of them is never forgotten."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from pybroker.controller.cluster.availability import after_leaving, after_returning, after_unclean_stop
from pybroker.controller.cluster.elections import elect, leads_anything
from pybroker.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage, TopicsImage
from pybroker.metadata.index_delta import build_index
from tests.support.controllers import CLUSTER

BROKERS = st.sets(st.integers(0, 4))


@st.composite
def partitions(draw: st.DrawFn) -> PartitionImage:
    replicas = draw(st.permutations(range(5)))[: draw(st.integers(1, 5))]
    isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    leader = draw(st.sampled_from([NO_LEADER, *isr]))
    return PartitionImage(leader=leader, leader_epoch=0, partition_epoch=0, replicas=tuple(replicas), isr=tuple(isr))


def image_of(partition: PartitionImage) -> MetadataImage:
    topic = TopicImage(name="t", topic_id=b"t" * 16, partitions={0: partition})
    topics = TopicsImage(by_name={"t": topic}, by_id={topic.topic_id: topic}, index=build_index([topic]))
    return MetadataImage(topics=topics)


def among(brokers: set[int]) -> Callable[[int, bytes], bool]:
    return lambda broker, _directory: broker in brokers


@given(partition=partitions(), usable=BROKERS)
def test_the_leader_is_in_sync_and_usable_or_nobody(partition: PartitionImage, usable: set[int]) -> None:
    leader, _ = elect(partition, among(usable))
    able = set(partition.isr) & usable
    assert leader in able if able else leader == NO_LEADER
    if partition.leader in able:
        assert leader == partition.leader


@given(partition=partitions(), usable=BROKERS, broker=st.integers(0, 4))
def test_an_unclean_stop_raises_the_leader_epoch_of_what_the_broker_leads(
    partition: PartitionImage, usable: set[int], broker: int
) -> None:
    changes = list(after_unclean_stop(image_of(partition), broker, among(usable)))
    leads = partition.leader == broker and broker in usable
    assert [change.leader for change in changes] == ([broker] if leads else [])
    assert all(change.isr is None and change.replicas is None for change in changes)


@given(partition=partitions(), usable=BROKERS, removed=st.integers(0, 4))
def test_a_broker_that_left_leads_nothing_and_the_isr_is_never_empty(
    partition: PartitionImage, usable: set[int], removed: int
) -> None:
    changes = list(after_leaving(image_of(partition), removed, among(usable - {removed}), CLUSTER))
    leader, isr = partition.leader, partition.isr
    for change in changes:
        leader = leader if change.leader == -2 else change.leader
        isr = isr if change.isr is None else tuple(change.isr)
    assert leader != removed
    assert isr
    assert set(isr) == (set(partition.isr) - {removed} or {removed})
    if removed not in partition.isr:
        assert changes == []


@given(partition=partitions(), usable=BROKERS)
def test_only_partitions_without_leader_get_one_when_a_broker_returns(
    partition: PartitionImage, usable: set[int]
) -> None:
    changes = list(after_returning(image_of(partition), among(usable), CLUSTER))
    electable = partition.leader == NO_LEADER and set(partition.isr) & usable
    assert bool(changes) == bool(electable)


def test_leading_is_leading_at_least_one_partition() -> None:
    image = image_of(PartitionImage(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2), isr=(1, 2)))
    assert leads_anything(image, 1)
    assert not leads_anything(image, 2)
