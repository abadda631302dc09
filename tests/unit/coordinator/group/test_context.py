"""Tests of `pybroker.coordinator.group.context`."""

from __future__ import annotations

from msgspec import structs

from pybroker.coordinator.group.context import GroupContext
from pybroker.coordinator.group.modern.subscription import metadata_hash
from pybroker.metadata.image import (
    EMPTY_IMAGE,
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from tests.support.groups import group_settings


def image(offset: int, **partitions: int) -> MetadataImage:
    """An image of topics with so many partitions each."""
    one = PartitionImage(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
    topics = [
        TopicImage(name=name, topic_id=name.encode().ljust(16, b"t"), partitions=dict.fromkeys(range(count), one))
        for name, count in partitions.items()
    ]
    by_name, by_id = {topic.name: topic for topic in topics}, {topic.topic_id: topic for topic in topics}
    return MetadataImage(offset=offset, topics=TopicsImage(by_name=by_name, by_id=by_id))


TOPICS = image(0, t=1)


def test_topics_that_are_as_they_were_are_the_same_with_what_was_derived_from_them() -> None:
    context = GroupContext(group_settings())
    context.follow(image(5, a=1, b=1))
    before = context.topics()
    assert context.topics() is before
    names = frozenset("abc")
    seen = metadata_hash(names, before.by_name)
    context.follow(image(6, a=1, b=2, c=1))
    after = context.topics()
    assert after.by_name["a"] is before.by_name["a"]
    assert after.by_name["b"] is not before.by_name["b"]
    assert metadata_hash(names, after.by_name) != seen
    context.follow(image(7, a=1, b=1))
    again = context.topics()
    assert metadata_hash(names, again.by_name) == seen
    assert again.by_name == before.by_name
    assert (before.version, after.version, again.version) == (5, 6, 6)


def test_a_broker_that_gets_another_rack_changes_the_topics_of_its_replicas() -> None:
    context = GroupContext(group_settings())
    seen = []
    for offset, rack in enumerate((None, "a", "a", "b")):
        broker = BrokerRegistration(1, b"", offset, listeners={}, security_protocols={}, rack=rack)
        context.follow(structs.replace(TOPICS, cluster=ClusterImage(brokers={1: broker}), offset=offset))
        seen.append(context.topics())
    assert [topics.by_name["t"].racks for topics in seen] == [(), (("a",),), (("a",),), (("b",),)]
    assert seen[1] is seen[2], "a start anew in the same rack changes nothing"
    assert len({metadata_hash(frozenset("t"), topics.by_name) for topics in seen}) == 3


def test_without_a_cluster_there_are_no_topics() -> None:
    context = GroupContext(group_settings())
    context.follow(EMPTY_IMAGE)
    assert context.topics().by_name == {}
