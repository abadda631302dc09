"""What a client may not do is refused item by item with Kafka's errors, and what it may not describe is not named.

Who asks is `User:ANONYMOUS`. Everybody may do everything until an entry is about a resource: entries about
`User:owner` close what they are about to everybody else.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.conftest import Server, leads_all, serving, transactional
from tests.conformance.transactions import see, write_marker
from tests.support.batches import TRANSACTIONAL, batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin",
}
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
READ, WRITE, DESCRIBE, CLUSTER_ACTION = 3, 4, 8, 9
DENY, ALLOW = 2, 3
TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED, TRANSACTIONAL_ID_REFUSED = 29, 30, 31, 53
INVALID_REQUEST = 42
UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID = 3, 100
BATCH = batch_of(b"a")


def creation(kind: int, name: str, pattern: int, operation: int, principal: str = "User:owner") -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": principal,
        "host": "*",
        "operation": operation,
        "permission_type": ALLOW,
    }


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(AUTHORIZER) as running, Wire(running.bootstrap_servers) as wire:
        names = ("open", "shown", "closed", "closed-too")
        # The broker that is asked leads.
        assigned = [{"partition_index": 0, "broker_ids": list(running.brokers)}]
        topics = [
            {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assigned} for name in names
        ]
        made = wire.call("CreateTopics", 7, topics=topics, timeout_ms=10_000, validate_only=False)
        assert [topic.error_code for topic in made.topics] == [0] * 4
        wait_until(lambda: all(leads_all(wire, name, 1) for name in names), within=60, what="the topics have leaders")
        response = wire.call(
            "CreateAcls",
            3,
            creations=[
                creation(TOPIC, "shown", LITERAL, DESCRIBE, "User:*"),
                creation(TOPIC, "closed", PREFIXED, READ),
                creation(GROUP, "closed", PREFIXED, READ),
                creation(TRANSACTIONAL_ID, "closed", PREFIXED, WRITE),
            ],
        )
        assert [result.error_code for result in response.results] == [0] * 4
        wait_until(lambda: "closed" not in all_topics(wire), within=60, what="the entries are in force")
        yield running


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    with Wire(server.bootstrap_servers) as connection:
        yield connection


def metadata(wire: Wire, *named: dict[str, Any], version: int = 12) -> list[Any]:
    topics = list(named) if named else None
    response = wire.call("Metadata", version, topics=topics, allow_auto_topic_creation=False)
    return list(response.topics)


def all_topics(wire: Wire) -> list[str]:
    return sorted(topic.name for topic in metadata(wire) if not topic.name.startswith("__"))


def by_name(name: str) -> dict[str, Any]:
    return {"topic_id": None, "name": name}


def ids(wire: Wire) -> dict[str, Any]:
    return {topic.name: topic.topic_id for topic in metadata(wire)}


def test_all_topics_are_those_that_may_be_described(wire: Wire) -> None:
    assert all_topics(wire) == ["open", "shown"]


def test_a_named_topic_that_may_not_be_described_is_refused_whether_there_is_one_or_not(wire: Wire) -> None:
    named = metadata(wire, by_name("open"), by_name("closed"), by_name("closed-and-not-there"))
    assert {topic.name: topic.error_code for topic in named} == {
        "open": 0,
        "closed": TOPIC_REFUSED,
        "closed-and-not-there": TOPIC_REFUSED,
    }
    assert [len(topic.partitions) for topic in named if topic.error_code] == [0, 0]


@pytest.mark.parametrize(("topic", "code"), [("open", 0), ("shown", TOPIC_REFUSED), ("closed", TOPIC_REFUSED)])
def test_a_topic_is_written_and_read_by_who_may(wire: Wire, topic: str, code: int) -> None:
    for _ in range(2):  # the second time it is remembered
        assert produced(wire.query(produce(topic, BATCH))).error_code == code
        assert fetched(wire.query(fetch(topic))).error_code == code


@pytest.mark.parametrize("version", [3, 9, 11, 12])
def test_a_batch_of_a_transaction_is_taken_from_who_may_write_as_its_id(wire: Wire, version: int) -> None:
    def code_of(transactional_id: str | None, attributes: int = TRANSACTIONAL) -> int:
        batch = batch_of(b"a", attributes=attributes, producer_id=7, producer_epoch=0, base_sequence=0)
        data = [{"name": "open", "partition_data": [{"index": 0, "records": batch}]}]
        requested = {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 10_000, "topic_data": data}
        return int(produced(wire.call("Produce", version, **requested)).error_code)

    for _ in range(2):  # the second time it is remembered
        assert code_of("closed-one") == TRANSACTIONAL_ID_REFUSED
        assert code_of(None) == TRANSACTIONAL_ID_REFUSED
        # Nobody has begun a transaction by that id.
        assert code_of("mine") not in (0, TRANSACTIONAL_ID_REFUSED)
    assert code_of("closed-one", attributes=0) == 0, "a batch that is of no transaction needs no right to an id"


def test_a_topic_by_id_is_refused_and_an_unknown_id_is_unknown(wire: Wire) -> None:
    topic_id = ids(wire)["shown"]
    response = wire.query(produce("", BATCH, version=13, topic_id=topic_id))
    assert produced(response).error_code == TOPIC_REFUSED
    assert fetched(wire.query(fetch("", version=13, topic_id=topic_id))).error_code == TOPIC_REFUSED
    unknown = type(topic_id)(int=77)
    assert fetched(wire.query(fetch("", version=13, topic_id=unknown))).error_code == UNKNOWN_TOPIC_ID


def test_a_topic_that_is_not_there_and_may_not_be_is_refused(wire: Wire) -> None:
    assert produced(wire.query(produce("closed-and-not-there", BATCH))).error_code == TOPIC_REFUSED
    assert fetched(wire.query(fetch("closed-and-not-there"))).error_code == TOPIC_REFUSED


def test_offsets_are_listed_of_what_may_be_described(wire: Wire) -> None:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    topics = [{"name": name, "partitions": [partition]} for name in ("closed", "open", "shown")]
    response = wire.call("ListOffsets", 6, replica_id=-1, isolation_level=0, topics=topics)
    codes = {topic.name: topic.partitions[0].error_code for topic in response.topics}
    assert codes == {"closed": TOPIC_REFUSED, "open": 0, "shown": 0}


def test_topics_are_made_and_deleted_by_who_may(wire: Wire) -> None:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("closed-new", "open-new")]
    response = wire.call("CreateTopics", 7, topics=topics, timeout_ms=10_000, validate_only=False)
    # Everybody may create and delete by the cluster, about which there is no entry.
    assert {topic.name: topic.error_code for topic in response.topics} == {"closed-new": 0, "open-new": 0}
    deleted = wire.call("DeleteTopics", 5, topic_names=["closed-new", "open-new"], timeout_ms=10_000)
    assert {topic.name: topic.error_code for topic in deleted.responses} == {"closed-new": 0, "open-new": 0}
    grows = [{"name": name, "count": 2, "assignments": None} for name in ("closed", "open")]
    grown = wire.call("CreatePartitions", 2, topics=grows, timeout_ms=10_000, validate_only=True)
    assert {topic.name: topic.error_code for topic in grown.results} == {"closed": TOPIC_REFUSED, "open": 0}


def test_settings_are_shown_of_what_may_be_described(wire: Wire) -> None:
    resources: list[dict[str, Any]] = [
        {"resource_type": 2, "resource_name": name, "configuration_keys": []} for name in ("closed", "open")
    ]
    response = wire.call("DescribeConfigs", 4, resources=resources)
    assert {one.resource_name: one.error_code for one in response.results} == {"closed": TOPIC_REFUSED, "open": 0}


def test_a_group_is_joined_found_and_described_by_who_may(wire: Wire) -> None:
    joined = wire.call(
        "JoinGroup",
        5,
        group_id="closed-group",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )
    assert joined.error_code == GROUP_REFUSED
    found = wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=["closed-group"])
    assert [one.error_code for one in found.coordinators] == [GROUP_REFUSED]
    described = wire.call("DescribeGroups", 5, groups=["closed-group"])
    assert [one.error_code for one in described.groups] == [GROUP_REFUSED]
    fetched_offsets = wire.call("OffsetFetch", 7, group_id="closed-group", topics=None, require_stable=False)
    assert fetched_offsets.error_code == GROUP_REFUSED


def test_an_entry_that_stands_for_nothing_is_refused_with_words(wire: Wire) -> None:
    wrong = [
        creation(4, "another", LITERAL, READ),
        creation(TOPIC, "", LITERAL, READ),
    ]
    response = wire.call("CreateAcls", 3, creations=wrong)
    assert [result.error_code for result in response.results] == [INVALID_REQUEST] * 2
    assert [result.error_message for result in response.results] == [
        "The only valid name for the CLUSTER resource is kafka-cluster",
        "Invalid empty resource name",
    ]


def test_entries_are_found_and_deleted_by_filters(wire: Wire) -> None:
    wire.call("CreateAcls", 3, creations=[creation(TOPIC, "passing", LITERAL, READ)] * 2)
    filters = {
        "resource_type_filter": TOPIC,
        "resource_name_filter": "passing",
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    found = wire.call("DescribeAcls", 3, **filters)
    assert [(one.resource_name, len(one.acls)) for one in found.resources] == [("passing", 1)]
    (result,) = wire.call("DeleteAcls", 3, filters=[filters]).filter_results
    assert [entry.resource_name for entry in result.matching_acls] == ["passing"]
    assert wire.call("DescribeAcls", 3, **filters).resources == []


@pytest.mark.parametrize("version", [12, 17])
def test_a_replicas_fetch_is_not_refused_for_a_topic_that_nobody_knows(wire: Wire, version: int) -> None:
    """A leader may know a topic later than its followers, and forget it earlier."""
    known = {"topic": "open", "topic_id": ids(wire)["open"]}
    unknown = {"topic": "nobody-knows", "topic_id": uuid.UUID(int=7)}

    def codes(*topics: dict[str, Any]) -> list[int]:
        requested = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1, "log_start_offset": 0}
        replica = {"replica_id": 5} if version < 15 else {"replica_state": {"replica_id": 5, "replica_epoch": -1}}
        response = wire.call(
            "Fetch", version, **replica, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1,
            topics=[{**topic, "partitions": [requested]} for topic in topics],
        )  # fmt: skip
        return [partition.error_code for topic in response.responses for partition in topic.partitions]

    (of_known,) = codes(known)
    assert of_known not in (TOPIC_REFUSED, CLUSTER_REFUSED)
    assert codes(known, unknown) == [of_known, UNKNOWN_TOPIC if version < 13 else UNKNOWN_TOPIC_ID]


@pytest.fixture(scope="module")
def closed_cluster() -> Iterator[Server]:
    """A server on which others than `User:owner` may neither ALTER the cluster nor ask what brokers ask each other."""
    with serving(AUTHORIZER) as running:
        yield running


def test_what_brokers_ask_of_each_other_about_transactions_is_refused_and_writes_nothing(
    closed_cluster: Server,
) -> None:
    with Wire(closed_cluster.bootstrap_servers) as wire:
        assigned = [{"partition_index": index, "broker_ids": list(closed_cluster.brokers)} for index in range(2)]
        topic = {"name": "orders", "num_partitions": -1, "replication_factor": -1, "assignments": assigned}
        wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000, validate_only=False)
        wait_until(lambda: leads_all(wire, "orders", 2), within=60, what="the topic has leaders")
        sender = transactional(wire, closed_cluster).init()
        assert (sender.add("orders", 0), sender.write("orders", b"open").error_code) == (0, 0)
        wire.call("CreateAcls", 3, creations=[creation(CLUSTER, "kafka-cluster", LITERAL, CLUSTER_ACTION)])
        who = {"producer_id": sender.producer_id, "epoch": sender.epoch}
        marker = {**who, "committed": True, "transaction_version": 0}
        wait_until(
            lambda: write_marker(wire, "orders", 1, producer_id=10**9, epoch=0) == CLUSTER_REFUSED,
            within=60,
            what="the entry is in force",
        )
        for version in (1, 2):
            assert write_marker(wire, "orders", version=version, **marker) == CLUSTER_REFUSED
        for version in (4, 5):
            for verify_only in (False, True):
                requested = {
                    "transactional_id": sender.id,
                    "producer_id": sender.producer_id,
                    "producer_epoch": sender.epoch,
                    "verify_only": verify_only,
                    "topics": [{"name": "orders", "partitions": [1]}],
                }
                assert wire.call("AddPartitionsToTxn", version, transactions=[requested]).error_code == CLUSTER_REFUSED
        (described,) = sender.describe().topics
        assert (described.topic, list(described.partitions)) == ("orders", [0])
        seen = see(wire, "orders")
        assert (seen.last_stable_offset, seen.high_watermark, seen.markers) == (0, 1, [])
