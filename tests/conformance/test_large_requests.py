"""The largest request of each API is answered or refused, and leaves others their answers.

How long others wait is a figure of `pybench compare --only 28-storm`, and no assertion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pybroker.handlers.registry import registered_apis
from pybroker.protocol.codec import encode
from pybroker.protocol.header import flexible
from pybroker.protocol.messages import request_class
from pybroker.testing import Broker
from tests.support.wire import Wire, header

ELEMENTS = 4_000
TOPICS = 200
PARTITIONS = 1_000
PATIENCE_SECONDS = 120


def names(prefix: str = "unknown") -> list[str]:
    return [f"{prefix}-{number}" for number in range(ELEMENTS)]


def owned(**fields: Any) -> list[dict[str, Any]]:
    """One topic of many partitions, each of them with these fields, until there are enough."""
    return [{"partition_index": number % PARTITIONS, **fields} for number in range(ELEMENTS - 1)]


def one_more_than(count: int) -> dict[str, Any]:
    return {"num_partitions": count + 1, "replication_factor": 1}


COMMITTED = {"committed_offset": 1, "committed_leader_epoch": 0, "committed_metadata": ""}
JOINING = {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
STREAMING = {
    "group_id": "s",
    "member_id": "m",
    "rebalance_timeout_ms": 60_000,
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
    "process_id": "p",
}

LARGEST: dict[str, tuple[int, dict[str, Any]]] = {
    "Metadata of names": (12, {"topics": [{"name": name} for name in names()], "allow_auto_topic_creation": False}),
    "Metadata that creates": (12, {"topics": [{"name": name} for name in names("new")]}),
    "Metadata of all topics": (12, {"topics": None}),
    "ListOffsets": (8, {"topics": [{"name": "wide", "partitions": owned(timestamp=0)}]}),
    "FindCoordinator": (4, {"key_type": 0, "coordinator_keys": names()}),
    "OffsetForLeaderEpoch": (
        4,
        {"topics": [{"topic": "wide", "partitions": [{"partition": 0, "leader_epoch": 0}] * (ELEMENTS - 1)}]},
    ),
    "DescribeConfigs of one topic": (
        4,
        {"resources": [{"resource_type": 2, "resource_name": "wide", "configuration_keys": None}] * ELEMENTS},
    ),
    "DescribeConfigs of topics": (
        4,
        {
            "resources": [
                {"resource_type": 2, "resource_name": f"t{number}", "configuration_keys": None}
                for number in range(TOPICS)
            ],
            "include_synonyms": True,
            "include_documentation": True,
        },
    ),
    "AlterConfigs": (
        2,
        {
            "resources": [
                {"resource_type": 2, "resource_name": name, "configs": [{"name": "retention.ms", "value": "1"}]}
                for name in names()[: ELEMENTS // 2]
            ],
        },
    ),
    "IncrementalAlterConfigs": (
        1,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": f"t{number}",
                    "configs": [
                        {"name": "cleanup.policy", "config_operation": 2, "value": ",".join(map(str, range(4_000)))}
                    ],
                }
                for number in range(100)
            ],
        },
    ),
    "CreateTopics of too many": (
        7,
        {"topics": [{"name": name, **one_more_than(0)} for name in names("new")]},
    ),
    "CreateTopics": (
        7,
        {
            "topics": [{"name": name, **one_more_than(0)} for name in names("valid")[:1_000]],
            "validate_only": True,
        },
    ),
    "CreatePartitions": (
        3,
        {
            "topics": [{"name": f"t{number}", "count": 20, "assignments": None} for number in range(TOPICS)],
            "validate_only": True,
        },
    ),
    "DeleteTopics": (5, {"topic_names": names()}),
    "DeleteRecords": (
        2,
        {"topics": [{"name": "wide", "partitions": [{"partition_index": 0, "offset": 0}] * (ELEMENTS - 1)}]},
    ),
    "ElectLeaders": (
        2,
        {"election_type": 0, "topic_partitions": [{"topic": "wide", "partitions": [0] * (ELEMENTS - 1)}]},
    ),
    "AlterPartitionReassignments": (
        0,
        {"topics": [{"name": "wide", "partitions": [{"partition_index": 0, "replicas": [1]}] * (ELEMENTS // 2 - 1)}]},
    ),
    "ListPartitionReassignments": (0, {"topics": [{"name": "wide", "partition_indexes": [0] * (ELEMENTS - 1)}]}),
    "DescribeTopicPartitions": (0, {"topics": [{"name": name} for name in names()]}),
    "DescribeLogDirs": (4, {"topics": [{"topic": name, "partitions": [0]} for name in names()[: ELEMENTS // 2]]}),
    "AlterReplicaLogDirs": (
        2,
        {"dirs": [{"path": "/nowhere", "topics": [{"name": "wide", "partitions": [0] * (ELEMENTS - 2)}]}]},
    ),
    "OffsetCommit": (8, {"group_id": "g", "topics": [{"name": "wide", "partitions": owned(**COMMITTED)}]}),
    "OffsetFetch": (
        8,
        {"groups": [{"group_id": "g", "topics": [{"name": "wide", "partition_indexes": list(range(ELEMENTS - 2))}]}]},
    ),
    "OffsetFetch of groups": (8, {"groups": [{"group_id": name, "topics": []} for name in names()]}),
    "OffsetFetch of one group": (8, {"groups": [{"group_id": "g", "topics": None}] * ELEMENTS}),
    "OffsetDelete": (
        0,
        {
            "group_id": "g",
            "topics": [{"name": "wide", "partitions": [{"partition_index": 0}] * (ELEMENTS - 1)}],
        },
    ),
    "DescribeGroups": (5, {"groups": names()}),
    "ConsumerGroupDescribe": (0, {"group_ids": names()}),
    "DeleteGroups": (2, {"groups_names": names()}),
    "ListGroups": (4, {"states_filter": names()}),
    "AddPartitionsToTxn": (
        3,
        {
            "v3_and_below_transactional_id": "t",
            "v3_and_below_topics": [{"name": "wide", "partitions": list(range(PARTITIONS)) * 3}],
        },
    ),
    "WriteTxnMarkers": (
        2,
        {
            "markers": [
                {
                    "producer_id": 7,
                    "topics": [{"name": "wide", "partition_indexes": list(range(PARTITIONS))}],
                }
            ]
            * (ELEMENTS // (PARTITIONS + 2))
        },
    ),
    "DescribeProducers": (0, {"topics": [{"name": "wide", "partition_indexes": [0] * (ELEMENTS - 1)}]}),
    "DescribeTransactions": (0, {"transactional_ids": names()}),
    "TxnOffsetCommit": (
        3,
        {
            "transactional_id": "t",
            "group_id": "g",
            "producer_id": 1,
            "producer_epoch": 0,
            "topics": [{"name": "wide", "partitions": owned(**COMMITTED)}],
        },
    ),
    "ListTransactions": (2, {"state_filters": names()[: ELEMENTS // 2], "producer_id_filters": [1] * (ELEMENTS // 2)}),
    "JoinGroup": (
        9,
        {
            "group_id": "classic",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": b"m"} for name in names()],
        },
    ),
    "SyncGroup": (
        5,
        {
            "group_id": "classic",
            "generation_id": 1,
            "member_id": "m",
            "assignments": [{"member_id": name, "assignment": b"a"} for name in names()],
        },
    ),
    "LeaveGroup": (5, {"group_id": "classic", "members": [{"member_id": name} for name in names()]}),
    "ConsumerGroupHeartbeat of names": (
        0,
        {"group_id": "c", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": names(), **JOINING},
    ),
    "ConsumerGroupHeartbeat of a pattern": (
        1,
        {
            "group_id": "p",
            "member_id": "m",
            "member_epoch": 0,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": "(t|x)*[0-9]+(a|b|c){1,30}.*",
            **JOINING,
        },
    ),
    "ConsumerGroupHeartbeat of partitions": (
        0,
        {
            "group_id": "c",
            "member_id": "m",
            "member_epoch": 1,
            "topic_partitions": [{"topic_id": bytes([1]) * 16, "partitions": list(range(ELEMENTS - 1))}],
        },
    ),
    "StreamsGroupDescribe": (1, {"group_ids": names()}),
    "StreamsGroupHeartbeat of topics": (
        1,
        {**STREAMING, "topology": {"subtopologies": [{"source_topics": names()[1:]}]}},
    ),
    "StreamsGroupHeartbeat of a chain of subtopologies": (
        1,
        {
            **STREAMING,
            "topology": {
                "subtopologies": [
                    {
                        "subtopology_id": f"{number:05}",
                        "source_topics": ["t1"] if number == ELEMENTS // 5 - 1 else [],
                        "repartition_sink_topics": [f"r{number}"],
                        "repartition_source_topics": [{"name": f"r{number + 1}"}] if number < ELEMENTS // 5 - 1 else [],
                    }
                    for number in range(ELEMENTS // 5)
                ]
            },
        },
    ),
    "StreamsGroupHeartbeat of tasks": (
        1,
        {
            "group_id": "s",
            "member_id": "m",
            "member_epoch": 1,
            "active_tasks": [{"subtopology_id": "0", "partitions": list(range(ELEMENTS - 1))}],
            "standby_tasks": [],
            "warmup_tasks": [],
        },
    ),
    "AddRaftVoter": (
        1,
        {
            "voter_id": 7,
            "voter_directory_id": b"d" * 16,
            "listeners": [{"name": name, "host": "h", "port": 1} for name in names()],
        },
    ),
    "DescribeUserScramCredentials": (0, {"users": [{"name": name} for name in names()]}),
    "AlterUserScramCredentials": (0, {"deletions": [{"name": name, "mechanism": 1} for name in names()]}),
    "DescribeClientQuotas": (
        1,
        {"components": [{"entity_type": "user", "match_type": 0, "match": name} for name in names()], "strict": False},
    ),
    "AlterClientQuotas": (
        1,
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": name}],
                    "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
                }
                for name in names()[: ELEMENTS // 3]
            ],
            "validate_only": False,
        },
    ),
    "CreateAcls": (
        3,
        {
            "creations": [
                {
                    "resource_type": 2,
                    "resource_name": name,
                    "resource_pattern_type": 3,
                    "principal": "User:a",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
                for name in names()
            ]
        },
    ),
    "DeleteAcls": (
        3,
        {
            "filters": [
                {"resource_type_filter": 2, "resource_name_filter": name, "operation": 1, "permission_type": 1}
                for name in names()
            ]
        },
    ),
    "CreateDelegationToken": (
        3,
        {
            "renewers": [{"principal_type": "User", "principal_name": name} for name in names()],
            "max_lifetime_ms": -1,
        },
    ),
    "DescribeDelegationToken": (
        3,
        {"owners": [{"principal_type": "User", "principal_name": name} for name in names()]},
    ),
    "UpdateFeatures": (
        1,
        {"feature_updates": [{"feature": name, "max_version_level": 1, "upgrade_type": 1} for name in names()]},
    ),
}
"""What is asked, by the API's name and what about: the version, and the request's fields."""

ALWAYS_SMALL = frozenset(
    (
        "AddOffsetsToTxn",
        "ApiVersions",
        "DescribeAcls",
        "DescribeCluster",
        "DescribeQuorum",
        "EndTxn",
        "ExpireDelegationToken",
        "GetTelemetrySubscriptions",
        "Heartbeat",
        "InitProducerId",
        "ListConfigResources",
        "PushTelemetry",
        "RemoveRaftVoter",
        "RenewDelegationToken",
        "SaslAuthenticate",
        "SaslHandshake",
        "UnregisterBroker",
    )
)
"""APIs whose requests and answers do not grow with what a client asks."""


def test_every_api_of_the_control_plane_is_asked_for_much() -> None:
    served = {api.name for api in registered_apis().values() if not api.in_data_plane}
    assert {what.split(" ")[0] for what in LARGEST} | ALWAYS_SMALL == served


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"socket.request.max.elements": str(ELEMENTS), "offsets.topic.num.partitions": "5"}
    with Broker(properties=settings) as running, Wire(running.bootstrap_servers, timeout=PATIENCE_SECONDS) as wire:
        topics = [{"name": f"t{number}", **one_more_than(0)} for number in range(TOPICS)]
        topics.append({"name": "wide", "num_partitions": PARTITIONS, "replication_factor": 1})
        wire.call("CreateTopics", 7, topics=topics, timeout_ms=60_000)
        wire.call("FindCoordinator", 3, key="g", key_type=0)
        wire.call("FindCoordinator", 3, key="t", key_type=1)
        yield running


def frame(what: str, change: Callable[[Any], Any] = lambda fields: fields) -> bytes:
    version, fields = LARGEST[what]
    key = next(api.key for api in registered_apis().values() if api.name == what.split(" ")[0])
    message = build(request_class(key), change(fields))
    return header(key, version, 7, flexible=flexible(key, version)) + encode(message, version)


def build(kind: type[Any], fields: dict[str, Any]) -> Any:
    from pybroker.protocol.schema import fields_of

    inner = {field.name: field.struct for field in fields_of(kind)}

    def value_of(name: str, value: Any) -> Any:
        struct = inner[name]
        if struct is None or value is None:
            return value
        return [build(struct, item) for item in value] if isinstance(value, list) else build(struct, value)

    return kind(**{name: value_of(name, value) for name, value in fields.items()})


@pytest.mark.parametrize("what", LARGEST)
def test_the_largest_request_is_answered_and_others_meanwhile(broker: Broker, what: str) -> None:
    address = broker.bootstrap_servers
    with Wire(address, timeout=PATIENCE_SECONDS) as wire, Wire(address, timeout=PATIENCE_SECONDS) as quiet:
        wire.send_frame(frame(what))
        assert quiet.call("ListGroups", 3).error_code == 0
        assert wire.read_frame()


def test_a_request_with_more_elements_than_are_taken_ends_its_connection_alone(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    too_many = frame("FindCoordinator", lambda fields: {**fields, "coordinator_keys": [*names(), "one more"]})
    with Wire(broker.bootstrap_servers) as wire, Wire(broker.bootstrap_servers) as quiet:
        wire.send_frame(too_many)
        assert wire.is_closed_by_peer()
        assert quiet.call("ApiVersions", 0).error_code == 0
    assert f"socket.request.max.elements={ELEMENTS}" in caplog.text


def test_one_request_creates_no_more_topics_than_it_may(caplog: pytest.LogCaptureFixture) -> None:
    with (
        Broker(properties={"auto.create.topics.max.per.request": "3"}) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wanted = [{"name": f"wanted-{number}"} for number in range(5)]
        response = wire.call("Metadata", 9, topics=wanted, allow_auto_topic_creation=True)
        assert [topic.error_code for topic in response.topics] == [0, 0, 0, 3, 3]
        assert "auto.create.topics.max.per.request=3" in caplog.text
        again = wire.call("Metadata", 9, topics=wanted, allow_auto_topic_creation=True)
        assert [topic.error_code for topic in again.topics] == [0, 0, 0, 0, 0]
