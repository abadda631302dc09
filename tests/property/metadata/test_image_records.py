"""An image and the records that make it are the same: nothing of an image is lost in a snapshot."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker.controller.quorum.snapshot.snapshots import open_snapshot, read_snapshot, write_snapshot
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import (
    AccessControlEntry,
    AclsImage,
    BrokerRegistration,
    ClusterImage,
    ConfigResource,
    ConfigsImage,
    ControllerRegistration,
    DelegationToken,
    DelegationTokensImage,
    FeaturesImage,
    MetadataImage,
    PartitionImage,
    ProducerIdsImage,
    ScramCredential,
    ScramImage,
    TopicImage,
    TopicsImage,
)
from pybroker.metadata.image_records import image_records
from pybroker.metadata.index_delta import build_index
from pybroker.metadata.loader import Loader
from pybroker.metadata.quotas import ClientQuotasImage, quota_entity
from pybroker.metadata.tokens_delta import tokens_image
from pybroker.protocol.messages.records.frame import decode_record

IDS = st.binary(min_size=16, max_size=16)
NAMES = st.text("abcXYZ._-0", min_size=1, max_size=12)
BROKER_IDS = st.integers(0, 2**31 - 1)
EPOCHS = st.integers(0, 2**31 - 1)
IDS_OF_SOME = st.lists(BROKER_IDS, max_size=4).map(tuple)


@st.composite
def registrations(draw: st.DrawFn, broker_id: int) -> BrokerRegistration:
    listeners = draw(st.dictionaries(NAMES, st.tuples(NAMES, st.integers(0, 65535)), max_size=3))
    return BrokerRegistration(
        id=broker_id,
        incarnation_id=draw(IDS),
        epoch=draw(st.integers(0, 2**63 - 1)),
        listeners=listeners,
        security_protocols={name: draw(st.integers(0, 3)) for name in listeners},
        rack=draw(st.none() | NAMES),
        fenced=draw(st.booleans()),
        in_controlled_shutdown=draw(st.booleans()),
        log_dirs=draw(st.lists(IDS, max_size=3).map(tuple)),
        features=draw(st.dictionaries(NAMES, st.tuples(EPOCHS, EPOCHS).map(lambda it: (it[0] % 99, it[1] % 99)))),
    )


@st.composite
def controllers(draw: st.DrawFn, controller_id: int) -> ControllerRegistration:
    registered = draw(registrations(controller_id))
    return ControllerRegistration(
        id=controller_id,
        incarnation_id=registered.incarnation_id,
        listeners=registered.listeners,
        security_protocols=registered.security_protocols,
        features=registered.features,
    )


@st.composite
def partitions(draw: st.DrawFn) -> PartitionImage:
    replicas = draw(st.lists(BROKER_IDS, min_size=1, max_size=4, unique=True).map(tuple))
    return PartitionImage(
        leader=draw(st.sampled_from([-1, *replicas])),
        leader_epoch=draw(EPOCHS),
        partition_epoch=draw(EPOCHS),
        replicas=replicas,
        isr=draw(IDS_OF_SOME),
        directories=draw(st.just(()) | st.lists(IDS, min_size=len(replicas), max_size=len(replicas)).map(tuple)),
        removing_replicas=draw(IDS_OF_SOME),
        adding_replicas=draw(IDS_OF_SOME),
        leader_recovery_state=draw(st.integers(0, 1)),
        eligible_leader_replicas=draw(IDS_OF_SOME),
        last_known_elr=draw(IDS_OF_SOME),
    )


SCRAM_USERS = st.dictionaries(
    NAMES,
    st.builds(
        ScramCredential,
        salt=st.binary(min_size=1, max_size=8),
        stored_key=st.binary(max_size=8),
        server_key=st.binary(max_size=8),
        iterations=st.integers(4096, 16384),
    ),
    min_size=1,
    max_size=2,
)
ENTRIES = st.builds(
    AccessControlEntry,
    st.integers(2, 7),
    NAMES,
    st.sampled_from([3, 4]),
    NAMES.map("User:{}".format),
    NAMES,
    st.integers(2, 15),
    st.sampled_from([2, 3]),
)

TIMES = st.integers(0, 2**62)
TOKENS = st.builds(
    DelegationToken,
    token_id=NAMES,
    owner=NAMES.map("User:{}".format),
    requester=NAMES.map("User:{}".format),
    renewers=st.lists(NAMES.map("User:{}".format), max_size=2).map(tuple),
    issued_ms=TIMES,
    expires_ms=TIMES,
    ends_ms=TIMES,
)
ENTITIES = (
    st.dictionaries(st.sampled_from(["user", "client-id"]), NAMES | st.none(), min_size=1)
    | st.dictionaries(st.just("ip"), NAMES | st.none(), min_size=1)
).map(lambda parts: quota_entity(parts.items()))
QUOTAS = st.dictionaries(
    ENTITIES,
    st.dictionaries(
        st.sampled_from(["producer_byte_rate", "request_percentage"]), st.floats(0, 1e18), min_size=1, max_size=2
    ),
    max_size=3,
)


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    brokers = {broker: draw(registrations(broker)) for broker in sorted(draw(st.sets(BROKER_IDS, max_size=3)))}
    topics = {}
    for topic_id, name in zip(
        draw(st.lists(IDS, max_size=3, unique=True)), draw(st.permutations(["a", "b", "c"])), strict=False
    ):
        indexes = sorted(draw(st.sets(st.integers(0, 9), max_size=3)))
        topics[topic_id] = TopicImage(
            name=name, topic_id=topic_id, partitions={index: draw(partitions()) for index in indexes}
        )
    resources = st.builds(ConfigResource, st.sampled_from([2, 4, 16, 32]), NAMES | st.just(""))
    offset = draw(st.integers(1, 2**62))
    # Entries of two ids differ.
    entries = draw(st.lists(ENTRIES, min_size=3, max_size=3, unique=True))
    levels = draw(st.dictionaries(NAMES | st.just("metadata.version"), st.integers(0, 30), max_size=4))
    return MetadataImage(
        offset=offset,
        epoch=draw(EPOCHS),
        cluster=ClusterImage(
            brokers=brokers,
            controllers={id_: draw(controllers(id_)) for id_ in sorted(draw(st.sets(BROKER_IDS, max_size=2)))},
        ),
        topics=TopicsImage(
            by_name={topic.name: topic for topic in topics.values()}, by_id=topics, index=build_index(topics.values())
        ),
        configs=ConfigsImage(
            by_resource=draw(st.dictionaries(resources, st.dictionaries(NAMES, st.text(), min_size=1, max_size=3)))
        ),
        features=FeaturesImage(levels=levels, epoch=draw(st.integers(0, offset))) if levels else FeaturesImage(),
        producer_ids=ProducerIdsImage(next_producer_id=draw(st.integers(0, 2**62))),
        scram=ScramImage(by_mechanism=draw(st.dictionaries(st.sampled_from([1, 2]), SCRAM_USERS))),
        acls=AclsImage(by_id=dict(zip(draw(st.lists(IDS, max_size=3, unique=True)), entries, strict=False))),
        delegation_tokens=tokens_image(draw(st.lists(TOKENS, max_size=50))),
        quotas=ClientQuotasImage(by_entity=draw(QUOTAS)),
    )


@settings(deadline=None, max_examples=50)
@given(image=images())
def test_the_records_of_an_image_make_it_again(image: MetadataImage) -> None:
    delta = MetadataDelta(MetadataImage())
    for record in image_records(image):
        delta.apply(record)
    delta.reach(image.offset, image.epoch)
    built = delta.build()
    assert msgspec.structs.replace(built, features=image.features) == image
    assert built.features.levels == image.features.levels


@settings(deadline=None, max_examples=50)
@given(image=images(), raft_index=st.integers(-1, 2**62))
def test_a_snapshot_makes_the_image_again_with_the_epoch_of_its_features(image: MetadataImage, raft_index: int) -> None:
    with TemporaryDirectory() as directory:
        written = write_snapshot(Path(directory), image, image.offset + 1, image.epoch, raft_index, 7)
        path = Path(directory) / written.file_name
        opened = open_snapshot(path)
        assert (opened.id, opened.raft_index, opened.timestamp_ms) == (written, raft_index, 7)
        loader = Loader()
        for batch in read_snapshot(path):
            loader.load([decode_record(value) for value in batch.values], batch.last_offset, batch.epoch)
        assert loader.publish() == image


@settings(deadline=None, max_examples=50)
@given(before=images(), image=images())
def test_an_image_that_replaces_another_is_in_force_as_it_is(before: MetadataImage, image: MetadataImage) -> None:
    loader = Loader()
    loader.replace(before)
    old = loader.publish()
    assert old == before
    loader.replace(image)
    new = loader.publish()
    assert new == image
    assert list(new.topics.by_id.items()) == [
        (topic_id, old.topics.by_id.get(topic_id) if old.topics.by_id.get(topic_id) == topic else topic)
        for topic_id, topic in new.topics.by_id.items()
    ]


WRITTEN = {
    AclsImage: 1,
    BrokerRegistration: 10,
    ClientQuotasImage: 1,
    ClusterImage: 2,
    ConfigsImage: 1,
    ControllerRegistration: 5,
    DelegationToken: 7,
    DelegationTokensImage: 2,
    FeaturesImage: 3,
    MetadataImage: 11,
    PartitionImage: 11,
    ProducerIdsImage: 1,
    ScramCredential: 4,
    ScramImage: 1,
    TopicImage: 3,
    TopicsImage: 3,
}


@pytest.mark.parametrize("image", WRITTEN, ids=lambda image: image.__name__)
def test_what_is_added_to_an_image_is_added_to_its_records(image: type[msgspec.Struct]) -> None:
    assert len(image.__struct_fields__) == WRITTEN[image], "write it in image_records, draw it above, count it here"
