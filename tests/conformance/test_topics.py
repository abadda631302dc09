"""Topics: created, described, deleted; a wrong item of a request does not harm the right ones."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import Server, Topic, serving
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.one_and_three

UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
INVALID_TOPIC = 17
TOPIC_AUTHORIZATION_FAILED = 29
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
INVALID_REQUEST = 42
UNKNOWN_TOPIC_ID = 100
BATCH = batch_of(b"a")


def item(name: str, partitions: int = 1, replication: int = 1, **more: Any) -> dict[str, Any]:
    """One topic of a CreateTopics request."""
    return {"name": name, "num_partitions": partitions, "replication_factor": replication, **more}


def create_topics(wire: Wire, *items: dict[str, Any], version: int = 7, validate_only: bool = False) -> dict[str, Any]:
    """The answers by topic name."""
    response = wire.call("CreateTopics", version, topics=list(items), timeout_ms=10_000, validate_only=validate_only)
    return {topic.name: topic for topic in response.topics}


def delete_topics(wire: Wire, version: int, *, names: tuple[str, ...] = (), ids: tuple[Any, ...] = ()) -> list[Any]:
    """The answers of a DeleteTopics request in order."""
    if version >= 6:
        wanted = [{"name": name} for name in names] + [{"name": None, "topic_id": one} for one in ids]
        return list(wire.call("DeleteTopics", version, topics=wanted, timeout_ms=10_000).responses)
    return list(wire.call("DeleteTopics", version, topic_names=list(names), timeout_ms=10_000).responses)


def describe(wire: Wire, name: str, *, version: int = 12, create: bool = False) -> Any:
    """One topic of a Metadata answer by name."""
    response = wire.call("Metadata", version, topics=[{"name": name}], allow_auto_topic_creation=create)
    return response.topics[0]


def exists(wire: Wire, name: str) -> bool:
    """Whether Metadata shows a topic."""
    return bool(describe(wire, name).error_code == 0)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(wire: Wire, topic_name: str, version: int) -> None:
    made = create_topics(wire, item(topic_name, 3), version=version)[topic_name]
    assert made.error_code == 0
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (3, 1)
        assert {entry.name: entry.value for entry in made.configs}["cleanup.policy"] == "delete"
    wait_until(lambda: exists(wire, topic_name), within=60, what="the topic is shown")
    assert len(describe(wire, topic_name).partitions) == 3


WRONG = {
    "a name with a slash": (item("a/b"), INVALID_TOPIC),
    "an empty name": (item(""), INVALID_TOPIC),
    "a name of dots": (item(".."), INVALID_TOPIC),
    "a name that is too long": (item("x" * 250), INVALID_TOPIC),
    "no partitions": (item("wrong-zero", 0), INVALID_PARTITIONS),
    "a negative number of partitions": (item("wrong-negative", -2), INVALID_PARTITIONS),
    "no replicas": (item("wrong-unreplicated", 1, 0), INVALID_REPLICATION_FACTOR),
    "more replicas than brokers": (item("wrong-replicas", 1, 9), INVALID_REPLICATION_FACTOR),
    "a key that does not exist": (
        item("wrong-key", configs=[{"name": "no.such.key", "value": "1"}]),
        INVALID_CONFIG,
    ),
    "a value that does not fit": (
        item("wrong-value", configs=[{"name": "retention.ms", "value": "soon"}]),
        INVALID_CONFIG,
    ),
    "a value out of range": (
        item("wrong-range", configs=[{"name": "segment.bytes", "value": "-1"}]),
        INVALID_CONFIG,
    ),
    "a value that is null": (item("wrong-null", configs=[{"name": "retention.ms", "value": None}]), INVALID_CONFIG),
    "an assignment to a broker that is not there": (
        item("wrong-broker", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [99]}]),
        INVALID_REPLICA_ASSIGNMENT,
    ),
    "an assignment and a number of partitions": (
        item("wrong-both", 1, 1, assignments=[{"partition_index": 0, "broker_ids": [1]}]),
        INVALID_REQUEST,
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_item_is_refused_and_the_right_one_beside_it_is_made(wire: Wire, topic_name: str, what: str) -> None:
    wrong, code = WRONG[what]
    responses = create_topics(wire, wrong, item(topic_name))
    assert responses[wrong["name"]].error_code == code, responses[wrong["name"]]
    assert responses[wrong["name"]].error_message
    assert responses[topic_name].error_code == 0


def test_a_topic_that_is_there_already_is_reported(wire: Wire, topic: Topic) -> None:
    response = create_topics(wire, item(topic.name))[topic.name]
    assert response.error_code == TOPIC_ALREADY_EXISTS
    assert topic.name in response.error_message


def test_a_topic_named_twice_in_one_request_is_not_made(wire: Wire, topic_name: str) -> None:
    responses = create_topics(wire, item(topic_name), item(topic_name, 2))
    assert responses[topic_name].error_code == INVALID_REQUEST
    assert not exists(wire, topic_name)


def test_the_metadata_topic_cannot_be_made(wire: Wire) -> None:
    response = create_topics(wire, item("__cluster_metadata"))["__cluster_metadata"]
    assert (response.error_code, response.error_message) == (TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def test_names_that_differ_in_dot_and_underscore_collide(wire: Wire, topic_name: str) -> None:
    assert create_topics(wire, item(f"{topic_name}.x"))[f"{topic_name}.x"].error_code == 0
    assert create_topics(wire, item(f"{topic_name}_x"))[f"{topic_name}_x"].error_code == INVALID_TOPIC


def test_validate_only_makes_nothing(wire: Wire, topic_name: str) -> None:
    response = create_topics(wire, item(topic_name, 5), validate_only=True)[topic_name]
    assert (response.error_code, response.num_partitions) == (0, 5)
    assert not exists(wire, topic_name)


def test_minus_one_asks_for_the_brokers_defaults(server: Server, wire: Wire, topic_name: str) -> None:
    response = create_topics(wire, item(topic_name, -1, -1))[topic_name]
    assert (response.error_code, response.num_partitions) == (0, 1)
    assert response.replication_factor == len(server.brokers)


def test_a_manual_assignment_is_kept(wire: Wire, topic_name: str) -> None:
    broker = wire.call("Metadata", 12, topics=[]).brokers[0].node_id
    chosen = [{"partition_index": index, "broker_ids": [broker]} for index in range(2)]
    assert create_topics(wire, item(topic_name, -1, -1, assignments=chosen))[topic_name].error_code == 0
    wait_until(lambda: exists(wire, topic_name), within=60, what="the topic is shown")
    assert [list(part.replica_nodes) for part in describe(wire, topic_name).partitions] == [[broker], [broker]]


@pytest.mark.parametrize("version", range(14))
def test_every_version_describes(server: Server, wire: Wire, create: Callable[..., Topic], version: int) -> None:
    topic = create(partitions=2)
    response = wire.call("Metadata", version, topics=[{"name": topic.name}], allow_auto_topic_creation=False)
    (described,) = response.topics
    assert sorted(broker.node_id for broker in response.brokers) == list(server.brokers)
    assert (described.error_code, described.name, described.is_internal) == (0, topic.name, False)
    assert sorted(part.partition_index for part in described.partitions) == [0, 1]
    for part in described.partitions:
        assert (part.error_code, part.leader_id) == (0, server.brokers[0])
        assert list(part.replica_nodes) == sorted(part.isr_nodes) == list(server.brokers)
    if version >= 1:
        assert response.controller_id in server.brokers
    if version >= 2:
        assert response.cluster_id
    if version >= 10:
        assert described.topic_id == topic.id


def test_the_address_given_is_the_one_dialled(server: Server, wire: Wire) -> None:
    brokers = {broker.node_id: broker for broker in wire.call("Metadata", 12, topics=[]).brokers}
    given = brokers[server.brokers[0]]
    assert f"{given.host}:{given.port}" == server.bootstrap_servers


def test_no_list_means_all_topics_and_an_empty_list_means_none(wire: Wire, topic: Topic) -> None:
    assert topic.name in {one.name for one in wire.call("Metadata", 12, topics=None).topics}
    assert list(wire.call("Metadata", 12, topics=[]).topics) == []


def test_version_0_says_all_with_an_empty_list(wire: Wire, topic: Topic) -> None:
    assert topic.name in {one.name for one in wire.call("Metadata", 0, topics=[]).topics}


def test_a_topic_is_described_by_its_id(wire: Wire, topic: Topic) -> None:
    known = wire.call("Metadata", 12, topics=[{"topic_id": topic.id, "name": None}]).topics[0]
    unknown = wire.call("Metadata", 12, topics=[{"topic_id": uuid.uuid4(), "name": None}]).topics[0]
    assert (known.error_code, known.name) == (0, topic.name)
    assert unknown.error_code == UNKNOWN_TOPIC_ID


def test_an_unknown_topic_is_not_made_unless_it_is_allowed(wire: Wire, topic_name: str) -> None:
    assert describe(wire, topic_name).error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert describe(wire, topic_name).error_code == UNKNOWN_TOPIC_OR_PARTITION
    first = describe(wire, topic_name, create=True).error_code
    assert first in {0, UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE}
    wait_until(lambda: exists(wire, topic_name), within=60, what="the topic was made")


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_kafkas_own_topics_are_made_by_their_settings_when_metadata_asks_first(name: str) -> None:
    settings = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
    with serving(settings) as server, Wire(server.bootstrap_servers) as wire:
        describe(wire, name, create=True)
        wait_until(lambda: exists(wire, name), within=60, what="the topic is shown")
        assert len(describe(wire, name).partitions) == 4
        requested = [{"resource_type": 2, "resource_name": name, "configuration_keys": ["cleanup.policy"]}]
        (described,) = wire.call("DescribeConfigs", 4, resources=requested).results
        assert [entry.value for entry in described.configs] == ["compact"]


def test_the_state_topic_of_share_groups_is_created_by_its_settings_when_metadata_names_it() -> None:
    name = "__share_group_state"
    settings = {"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"}
    with serving(settings) as server, Wire(server.bootstrap_servers) as wire:
        describe(wire, name, create=True)
        wait_until(lambda: exists(wire, name), within=60, what="the topic is shown")
        made = describe(wire, name)
        assert (made.is_internal, len(made.partitions)) == (True, 50)
        (described,) = wire.call("DescribeConfigs", 4, resources=[{"resource_type": 2, "resource_name": name}]).results
        assert {one.name: one.value for one in described.configs if one.config_source == 1} == {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "1",
            "retention.ms": "-1",
            "segment.bytes": "104857600",
        }


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("version", [1, 4, 12])
def test_the_metadata_log_is_an_unknown_topic_to_clients(wire: Wire, version: int, create: bool) -> None:
    described = describe(wire, "__cluster_metadata", create=create, version=version)
    assert (described.error_code, described.is_internal) == (UNKNOWN_TOPIC_OR_PARTITION, False)


def test_a_name_that_cannot_be_is_refused_by_metadata(wire: Wire) -> None:
    assert describe(wire, "a/b", create=True).error_code == INVALID_TOPIC


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes(wire: Wire, topic: Topic, version: int) -> None:
    (response,) = delete_topics(wire, version, names=(topic.name,))
    assert (response.error_code, response.name) == (0, topic.name)
    wait_until(lambda: not exists(wire, topic.name), within=60, what="the topic is gone")
    part = produced(wire.query(produce(topic.name, BATCH)))
    assert part.error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_deleted_by_its_id_and_unknown_ones_are_reported(wire: Wire, topic: Topic) -> None:
    responses = delete_topics(wire, 6, names=("no-such-topic",), ids=(topic.id, uuid.uuid4()))
    codes = {(response.name or "nameless"): response.error_code for response in responses}
    assert codes == {"no-such-topic": UNKNOWN_TOPIC_OR_PARTITION, topic.name: 0, "nameless": UNKNOWN_TOPIC_ID}


def test_a_topic_named_twice_in_one_request_is_not_deleted(wire: Wire, topic: Topic) -> None:
    for version, names, ids, words in (
        (5, (topic.name, topic.name), (), "Duplicate topic name."),
        (6, (), (topic.id, topic.id), "Duplicate topic id."),
        (6, (topic.name,), (topic.id,), "The provided topic name maps to an ID that was already supplied."),
    ):
        (response,) = delete_topics(wire, version, names=names, ids=ids)
        assert (response.error_code, response.error_message, response.name) == (INVALID_REQUEST, words, topic.name)
    assert exists(wire, topic.name)


def test_a_topic_made_again_has_another_id_and_an_empty_log(wire: Wire, create: Callable[..., Topic]) -> None:
    first = create()
    assert produced(wire.query(produce(first.name, BATCH))).error_code == 0
    assert delete_topics(wire, 6, names=(first.name,))[0].error_code == 0
    wait_until(lambda: not exists(wire, first.name), within=60, what="the topic is gone")
    second = create(first.name)
    assert second.id != first.id
    part = fetched(wire.query(fetch(second.name)))
    assert (part.error_code, part.high_watermark) == (0, 0)
    old = fetched(wire.query(fetch("", version=13, topic_id=first.id)))
    assert old.error_code == UNKNOWN_TOPIC_ID


def test_the_offsets_topic_that_a_client_asks_for_is_made_as_the_brokers_would_make_it() -> None:
    with serving({"offsets.topic.num.partitions": "3"}) as server, Wire(server.bootstrap_servers) as wire:
        name = "__consumer_offsets"
        describe(wire, name, create=True)
        wait_until(lambda: exists(wire, name), within=60, what="the topic is shown")
        made = describe(wire, name)
        assert (made.is_internal, len(made.partitions)) == (True, 3)
        requested = {"resource_type": 2, "resource_name": name, "configuration_keys": ["cleanup.policy"]}
        (found,) = wire.call("DescribeConfigs", 4, resources=[requested]).results
        assert [(entry.name, entry.value) for entry in found.configs] == [("cleanup.policy", "compact")]
