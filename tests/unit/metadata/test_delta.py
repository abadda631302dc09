"""What each metadata record changes in the image, and what it leaves the same object."""

from __future__ import annotations

import pytest

from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.errors import RecordError
from pybroker.metadata.image import EMPTY_IMAGE, TOPIC_RESOURCE, MetadataImage, PartitionImage
from pybroker.protocol.messages.records.broker_registration_change import BrokerRegistrationChangeRecord
from pybroker.protocol.messages.records.config import ConfigRecord
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.no_op import NoOpRecord
from pybroker.protocol.messages.records.partition import PartitionRecord
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
from pybroker.protocol.messages.records.producer_ids import ProducerIdsRecord
from pybroker.protocol.messages.records.register_broker import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from pybroker.protocol.messages.records.remove_topic import RemoveTopicRecord
from pybroker.protocol.messages.records.topic import TopicRecord
from pybroker.protocol.messages.records.unregister_broker import UnregisterBrokerRecord
from pybroker.protocol.schema import Message

A, B = b"a" * 16, b"b" * 16


def after(*records: Message, base: MetadataImage = EMPTY_IMAGE, offset: int = 7) -> MetadataImage:
    delta = MetadataDelta(base)
    for record in records:
        delta.apply(record)
    delta.reach(offset, 3)
    return delta.build()


def partition(topic_id: bytes, index: int, leader: int = 1) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic_id,
        partition_id=index,
        replicas=[1, 2],
        isr=[1, 2],
        leader=leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=[A, B],
    )


def two_topics() -> MetadataImage:
    return after(
        TopicRecord(name="a", topic_id=A),
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="a", name="retention.ms", value="5"),
        partition(A, 1),
        partition(A, 0),
        TopicRecord(name="b", topic_id=B),
        partition(B, 0),
    )


def registration(epoch: int = 4) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=A,
        broker_epoch=epoch,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0)],
        features=[BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=25)],
        rack="r",
        log_dirs=[B],
    )


def test_a_topic_is_found_by_name_and_by_id_with_its_partitions_in_order() -> None:
    image = two_topics()
    assert image.topics.by_name["a"] is image.topics.by_id[A]
    assert list(image.topics.by_id[A].partitions) == [0, 1]
    assert image.topics.by_id[A].partitions[1] == PartitionImage(
        leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2), isr=(1, 2), directories=(A, B)
    )
    assert (image.offset, image.epoch) == (7, 3)


def test_what_does_not_change_stays_the_same_object() -> None:
    before = two_topics()
    image = after(PartitionChangeRecord(topic_id=A, partition_id=0, leader=2), base=before)
    assert image.topics.by_id[B] is before.topics.by_id[B]
    assert image.topics.by_id[A] is not before.topics.by_id[A]
    assert image.configs is before.configs
    assert image.configs.of_topic("a") is before.configs.of_topic("a")
    assert image.configs.of_topic("b") is before.configs.of_topic("b")
    assert image.cluster is before.cluster


def test_a_new_leader_begins_a_leader_epoch_and_other_changes_do_not() -> None:
    before = two_topics()
    elected = (
        after(PartitionChangeRecord(topic_id=A, partition_id=0, leader=2), base=before).topics.by_id[A].partitions[0]
    )
    assert (elected.leader, elected.leader_epoch, elected.partition_epoch, elected.isr) == (2, 1, 1, (1, 2))
    change = PartitionChangeRecord(topic_id=A, partition_id=0, isr=[2])
    shrunk = after(change, base=before).topics.by_id[A].partitions[0]
    assert (shrunk.leader, shrunk.leader_epoch, shrunk.partition_epoch, shrunk.isr) == (1, 0, 1, (2,))


def test_removing_a_topic_removes_its_configurations() -> None:
    image = after(RemoveTopicRecord(topic_id=A), base=two_topics())
    assert list(image.topics.by_name) == ["b"]
    assert image.configs.by_resource == {}


def test_a_topic_made_anew_under_its_name_in_one_delta_is_another_topic() -> None:
    image = after(RemoveTopicRecord(topic_id=A), TopicRecord(name="a", topic_id=b"c" * 16), base=two_topics())
    assert image.topics.by_name["a"].topic_id == b"c" * 16
    assert A not in image.topics.by_id


def test_a_topic_that_comes_and_goes_in_one_delta_leaves_nothing() -> None:
    image = after(
        TopicRecord(name="a", topic_id=A),
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="a", name="retention.ms", value="5"),
        RemoveTopicRecord(topic_id=A),
    )
    assert image.topics == EMPTY_IMAGE.topics
    assert image.configs == EMPTY_IMAGE.configs


def test_a_delta_names_what_it_changed() -> None:
    delta = MetadataDelta(two_topics())
    delta.apply(TopicRecord(name="c", topic_id=b"c" * 16))
    delta.apply(RemoveTopicRecord(topic_id=B))
    delta.apply(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="a", name="retention.ms", value=None))
    assert delta.topics.created == [b"c" * 16]
    assert list(delta.topics.removed) == [B]
    assert delta.build().configs.of_topic("a") == {}


def test_a_broker_is_registered_unfenced_and_forgotten() -> None:
    image = after(registration())
    broker = image.cluster.brokers[1]
    assert (broker.fenced, broker.rack, broker.log_dirs) == (True, "r", (B,))
    assert broker.listeners == {"PLAINTEXT": ("h", 9092)}
    assert broker.features == {"metadata.version": (7, 25)}
    image = after(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4, fenced=-1), base=image)
    assert not image.cluster.brokers[1].fenced
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4, in_controlled_shutdown=1)
    assert after(change, base=image).cluster.brokers[1].in_controlled_shutdown
    assert after(UnregisterBrokerRecord(broker_id=1, broker_epoch=4), base=image).cluster.brokers == {}


def test_a_feature_level_of_zero_removes_the_feature() -> None:
    image = after(FeatureLevelRecord(name="metadata.version", feature_level=25), offset=5)
    assert (image.features.levels, image.features.epoch) == ({"metadata.version": 25}, 5)
    assert after(NoOpRecord(), base=image, offset=6).features is image.features
    assert after(FeatureLevelRecord(name="metadata.version"), base=image).features.levels == {"metadata.version": 0}


def test_producer_ids_only_grow() -> None:
    image = after(ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=1000))
    assert image.producer_ids.next_producer_id == 1000
    with pytest.raises(RecordError):
        after(ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=1000), base=image)


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(name="other", topic_id=A),
        partition(b"?" * 16, 0),
        PartitionChangeRecord(topic_id=A, partition_id=9, leader=1),
        RemoveTopicRecord(topic_id=b"?" * 16),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=0),
        BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=4, fenced=1),
    ],
)
def test_a_record_that_cannot_follow_is_refused(record: Message) -> None:
    base = after(registration(), base=two_topics())
    with pytest.raises(RecordError):
        after(record, base=base)
