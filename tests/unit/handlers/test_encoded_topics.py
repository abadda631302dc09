"""Encoded topics: made once for a state of a topic, and bounded in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from pybroker.handlers.encoded_topics import EncodedTopics, Form, encode_topic
from pybroker.machine.slices import whole
from pybroker.metadata.image import (
    EMPTY_IMAGE,
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from pybroker.protocol.codec import encode
from pybroker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FORM = Form(12, 0)


def topic(number: int, leader: int = 1) -> TopicImage:
    partition = PartitionImage(leader=leader, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
    return TopicImage(name=f"t{number}", topic_id=bytes([number]) * 16, partitions={0: partition})


def image(*topics: TopicImage, cluster: ClusterImage = EMPTY_IMAGE.cluster) -> MetadataImage:
    by_name, by_id = {one.name: one for one in topics}, {one.topic_id: one for one in topics}
    return msgspec.structs.replace(EMPTY_IMAGE, topics=TopicsImage(by_name=by_name, by_id=by_id), cluster=cluster)


class Described:
    """Describes topics, and notes which."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, one: TopicImage) -> MetadataResponseTopic:
        self.names.append(one.name)
        partitions = [MetadataResponsePartition(leader_id=it.leader) for it in one.partitions.values()]
        return MetadataResponseTopic(name=one.name, topic_id=one.topic_id, partitions=partitions)

    def since(self) -> list[str]:
        names, self.names = self.names, []
        return names


def all_of(kept: EncodedTopics, state: MetadataImage, describe: Callable[[TopicImage], Any]) -> list[bytes]:
    return whole(kept.all_of(FORM, state, describe))


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("count", [0, 1, 200])
def test_topics_stand_in_the_response_as_if_they_were_encoded_with_it(version: int, count: int) -> None:
    describe = Described()
    topics = [describe(topic(number)) for number in range(count)]
    response = MetadataResponse(cluster_id="c", controller_id=1)
    response.topics = topics
    whole = encode(response, version)
    response.topics = cast("list[MetadataResponseTopic]", [encode_topic(one, version) for one in topics])
    assert encode(response, version) == whole


def test_a_topic_is_encoded_once_until_it_changes() -> None:
    kept, describe = EncodedTopics(), Described()
    first, second = topic(1), topic(2)
    all_of(kept, image(first, second), describe)
    assert describe.since() == ["t1", "t2"]
    all_of(kept, image(first, second), describe)
    changed = topic(2, leader=7)
    data = all_of(kept, image(first, changed, topic(3)), describe)
    assert describe.since() == ["t2", "t3"]
    assert kept.lookup(FORM, image(first, changed), describe)(changed) == data[1]
    assert describe.since() == []
    assert kept.lookup(FORM._replace(version=9), image(first), describe)(first) != data[0]


def test_a_change_of_the_brokers_drops_all() -> None:
    kept, describe = EncodedTopics(), Described()
    one = topic(1)
    all_of(kept, image(one), describe)
    broker = BrokerRegistration(id=1, incarnation_id=bytes(16), epoch=1, listeners={}, security_protocols={})
    all_of(kept, image(one, cluster=ClusterImage({1: broker})), describe)
    assert describe.since() == ["t1", "t1"]


def test_what_is_kept_is_bounded_and_deleted_topics_go() -> None:
    kept, describe = EncodedTopics(max_bytes=2_000), Described()
    many = [topic(number) for number in range(100)]
    assert len(all_of(kept, image(*many), describe)) == 100
    assert kept.bytes <= 2_000
    kept = EncodedTopics()
    all_of(kept, image(*many, *(topic(number) for number in range(100, 250))), describe)
    before = kept.bytes
    all_of(kept, image(many[0]), describe)
    assert 0 < kept.bytes < before / 100


def test_topics_that_are_asked_about_one_by_one_and_deleted_go() -> None:
    kept, describe = EncodedTopics(), Described()
    sizes = []
    for number in range(250):
        only = topic(number)
        kept.lookup(FORM, image(only), describe)(only)
        sizes.append(kept.bytes)
    assert max(sizes) < 100 * sizes[0]
