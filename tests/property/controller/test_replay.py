"""Replaying what a machine decided, on a fresh one, gives the same state: through bytes, in any batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker.controller.cluster import events
from pybroker.controller.cluster.availability import Rules
from pybroker.controller.cluster.elections import Election
from pybroker.controller.cluster.log_directories import usable_brokers
from pybroker.controller.cluster.machine import ClusterMachine
from pybroker.controller.cluster.partition_changes import build_change
from pybroker.controller.cluster.placement import is_usable
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.cluster.whole_requests import whole_creation, whole_deletion
from pybroker.metadata.features import RECORD_VERSIONS
from pybroker.metadata.image import BROKER_RESOURCE, NO_LEADER, TOPIC_RESOURCE, ConfigResource, MetadataImage
from pybroker.metadata.index_delta import build_index
from pybroker.metadata.loader import Loader
from pybroker.protocol.messages.alter_partition_reassignments import ReassignablePartition
from pybroker.protocol.messages.create_topics import CreatableTopicConfig
from pybroker.protocol.messages.records.frame import decode_record, encode_record
from tests.support.config_rules import BadIsWrong

NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "c", "", "d/e"])
BROKERS = st.integers(0, 3)
CONFIG_NAMES = st.sampled_from(["retention.ms", "cleanup.policy", "bad", "min.insync.replicas"])
SETTINGS = ClusterSettings(2, 1, 9000, BadIsWrong(), 1000, 0, 1000, 500)
FEATURES = {"metadata.version": (7, 25), "eligible.leader.replicas.version": (0, 1), "transaction.version": (0, 2)}
DIRECTORIES = [b"d" * 16, b"e" * 16]


class Caught(NamedTuple):
    """A replica of some partition has caught up: its leader has it in the ISR."""

    which: int
    broker: int

    def decide(self, image: MetadataImage) -> list[Any]:
        brokers = image.cluster.brokers
        keys = [(topic, index) for topic in image.topics.by_id.values() for index in topic.partitions]
        if not keys:
            return []
        topic, index = keys[self.which % len(keys)]
        before = topic.partitions[index]
        joins = self.broker in before.replicas and self.broker not in before.isr and before.leader != NO_LEADER
        if not joins or not is_usable(brokers[self.broker]):
            return []
        wanted = msgspec.structs.replace(before, isr=(*before.isr, self.broker), leader_recovery_state=0)
        rules = Rules(image, SETTINGS)(topic)
        change = build_change(
            topic.topic_id, index, before, wanted, usable=usable_brokers(image), rules=rules, election=Election.ONLINE
        )
        return [] if change is None else [change]


@st.composite
def new_topics(draw: st.DrawFn) -> events.CreateTopics:
    topics = draw(
        st.lists(
            events_of(
                events.NewTopic,
                name=NAMES,
                num_partitions=st.integers(-1, 3),
                replication_factor=st.integers(-1, 3),
                configs=st.lists(st.builds(CreatableTopicConfig, name=CONFIG_NAMES, value=st.just("1")), max_size=2),
            ),
            max_size=3,
        )
    )
    ids = [draw(st.uuids(version=4)).bytes for _ in topics]
    return events.CreateTopics(topics, ids, draw(st.integers(0, 100)), whole_creation(topics, 2), draw(st.booleans()))


def events_of(event: Callable[..., Any], *given: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> Any:
    """Events with such values. Hypothesis asks no type: those of annotations are there for type checkers alone."""
    return st.builds(lambda *values, **others: event(*values, **others), *given, **named)


RESOURCES = st.builds(ConfigResource, st.sampled_from([TOPIC_RESOURCE, BROKER_RESOURCE]), NAMES)
CHANGES = st.dictionaries(CONFIG_NAMES, st.none() | st.sampled_from(["1", "2"]), max_size=2)
# An epoch of 0 stands for the one in force.
EPOCHS = st.sampled_from([0, 0, 0, 77])
EVENTS = st.one_of(
    new_topics(),
    st.lists(NAMES | st.just(b"?" * 16), max_size=3).map(
        lambda topics: events.DeleteTopics(topics, whole_deletion(topics))
    ),
    events_of(
        events.RegisterBroker,
        broker_id=BROKERS,
        incarnation_id=st.sampled_from([b"x" * 16, b"y" * 16]),
        listeners=st.just({"P": ("h", 1)}),
        security_protocols=st.just({"P": 0}),
        epoch=st.integers(1, 50),
        rack=st.sampled_from([None, "r"]),
        log_dirs=st.sampled_from([(), tuple(DIRECTORIES[:1]), tuple(DIRECTORIES)]),
        features=st.just(FEATURES),
        fenced=st.booleans(),
        session_is_alive=st.booleans(),
        previous_broker_epoch=st.integers(-1, 50),
    ),
    events_of(events.Heartbeat, BROKERS, EPOCHS, st.booleans(), st.booleans()),
    events_of(events.SessionExpired, BROKERS, EPOCHS),
    events_of(events.UnregisterBroker, BROKERS),
    events_of(events.LogDirectoriesFailed, BROKERS, EPOCHS, st.lists(st.sampled_from(DIRECTORIES), max_size=1)),
    events_of(events.BalanceLeaders),
    events_of(events.ElectUncleanly),
    events_of(events.WriteNoOp),
    st.builds(Caught, st.integers(0, 5), BROKERS),
    events_of(
        events.ElectLeaders,
        st.sampled_from(events.ElectionType),
        st.none() | st.lists(st.tuples(NAMES, st.lists(st.integers(-1, 3), max_size=3)), max_size=3),
    ),
    events_of(
        events.AlterReassignments,
        st.lists(
            events_of(
                events.ReassignableTopic,
                name=NAMES,
                partitions=st.lists(
                    st.builds(
                        ReassignablePartition,
                        partition_index=st.integers(-1, 3),
                        replicas=st.none() | st.lists(BROKERS, max_size=3),
                    ),
                    max_size=3,
                ),
            ),
            max_size=3,
        ),
        st.booleans(),
    ),
    events_of(events.ListReassignments, st.none()),
    events_of(events.AlterConfigs, st.lists(events_of(events.ConfigChange, RESOURCES, CHANGES), max_size=3)),
    events_of(events.AllocateProducerIds, BROKERS, EPOCHS),
    events_of(
        events.UpdateFeatures,
        st.lists(
            events_of(
                events.FeatureUpdate,
                st.sampled_from(["metadata.version", "group.version", "eligible.leader.replicas.version"]),
                st.integers(0, 26) | st.integers(0, 1),
                st.integers(0, 3),
            ),
            max_size=2,
        ),
        st.just(1),
    ),
)


def in_force(event: Any, image: MetadataImage) -> Any:
    if getattr(event, "broker_epoch", None) == 0 and event.broker_id in image.cluster.brokers:
        return msgspec.structs.replace(event, broker_epoch=image.cluster.brokers[event.broker_id].epoch)
    return event


def decided(machine: ClusterMachine, event: Any, now: int = 0) -> list[Any]:
    if isinstance(event, Caught):
        return event.decide(machine.image)
    return list(machine.handle(in_force(event, machine.image), now).records)


def state(image: MetadataImage) -> tuple[Any, ...]:
    return image.cluster, image.topics, image.configs, image.features.levels, image.producer_ids


def check_invariants(image: MetadataImage) -> None:
    topics = image.topics
    assert {topic.name: topic for topic in topics.by_id.values()} == dict(topics.by_name)
    for resource in image.configs.by_resource:
        assert resource.type == BROKER_RESOURCE or resource.name in topics.by_name
    for topic in topics.by_id.values():
        assert list(topic.partitions) == list(range(len(topic.partitions)))
        for partition in topic.partitions.values():
            eligible = set(partition.eligible_leader_replicas)
            assert partition.isr or partition.leader == NO_LEADER
            assert eligible <= set(partition.replicas)
            assert not eligible & set(partition.isr)
            assert set(partition.isr) <= set(partition.replicas)
            assert {*partition.adding_replicas, *partition.removing_replicas} <= set(partition.replicas)
            assert partition.leader in {NO_LEADER, *partition.isr}
            if partition.leader != NO_LEADER:
                leader = image.cluster.brokers[partition.leader]
                assert not leader.fenced
    assert topics.index == build_index(topics.by_id.values())


def check_epochs(before: MetadataImage, after: MetadataImage) -> None:
    """Epochs rise with what they count, and nobody leads uncleanly where nobody allows it."""
    for topic_id, topic in after.topics.by_id.items():
        old = before.topics.by_id.get(topic_id)
        for index, partition in topic.partitions.items():
            was = None if old is None else old.partitions.get(index)
            if was is None or was is partition:
                continue
            assert partition.partition_epoch > was.partition_epoch
            assert partition.leader_epoch >= was.leader_epoch
            if partition.leader != was.leader:
                assert partition.leader_epoch > was.leader_epoch
                safe = {NO_LEADER, *was.isr, *was.eligible_leader_replicas}
                assert partition.leader in safe or partition.leader_recovery_state == 1


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.integers(1, 7))
def test_replay_gives_the_same_state(some: list[Any], batch_size: int) -> None:
    machine = ClusterMachine(SETTINGS)
    log: list[bytes] = []
    for now, event in enumerate(some):
        image = machine.image
        before = state(image)
        records = decided(machine, event, now)
        assert state(machine.image) == before, "handle changes nothing"
        for record in records:
            machine.apply(record)
            log.append(encode_record(record, RECORD_VERSIONS[type(record).__name__]))
        check_invariants(machine.image)
        check_epochs(image, machine.image)
    fresh, loader = ClusterMachine(SETTINGS), Loader()
    for start in range(0, len(log), batch_size):
        records = [decode_record(value) for value in log[start : start + batch_size]]
        for record in records:
            fresh.apply(record)
        loader.load(records, start + len(records) - 1, 1)
        loader.publish()
    assert state(fresh.image) == state(machine.image)
    assert state(loader.image) == state(machine.image)


@settings(max_examples=50, deadline=None)
@given(st.lists(EVENTS, max_size=10), EVENTS)
def test_a_draft_and_its_machine_do_not_see_each_other(some: list[Any], last: Any) -> None:
    machine = ClusterMachine(SETTINGS)
    for event in some:
        for record in decided(machine, event):
            machine.apply(record)
    before = state(machine.image)
    draft = machine.draft()
    for record in decided(draft, last):
        draft.apply(record)
    draft_state = state(draft.image)
    assert state(machine.image) == before
    for record in decided(machine, last):
        machine.apply(record)
    assert state(machine.image) == draft_state == state(draft.image)
