"""The largest sensible request of each API, as complete frames for the storms.

Owns the requests. No request changes the cluster, so that every repetition finds the same state: creations and changes
are only validated, or refer to existing or unknown objects.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.codec import encode
from pybroker.protocol.header import RequestHeader, flexible
from pybroker.protocol.messages import request_class
from pybroker.protocol.schema import Struct, fields_of

TOPICS, PARTITIONS = 500, 4
_MANY = 1000
_TOPIC_RESOURCE = 2
Fields = Mapping[str, Any]


def topic_names() -> list[str]:
    """Return the names of the topics, of `PARTITIONS` partitions each, that exist before a storm."""
    return [f"storm-{number:04}" for number in range(TOPICS)]


def frame(name: str, version: int, fields: Fields) -> bytes:
    """Return a request with a size prefix, by Kafka's name of the API. Nested structs are mappings."""
    cls = request_class(ApiKey[name])
    body = encode(_made(cls, fields), version)
    tagged = flexible(cls.__message__.api_key, version)
    head = RequestHeader(
        request_api_key=cls.__message__.api_key, request_api_version=version, correlation_id=7, client_id="storm"
    )
    whole = encode(head, 2 if tagged else 1) + body
    return struct.pack(">i", len(whole)) + whole


def _made(cls: type[Struct], fields: Fields) -> Any:
    of_structs = {field.name: field.struct for field in fields_of(cls) if field.struct is not None}
    made: dict[str, Any] = {}
    for name, value in fields.items():
        struct_class = of_structs.get(name)
        if struct_class is None or value is None:
            made[name] = value
        elif isinstance(value, list):
            made[name] = [_made(struct_class, item) for item in value]
        else:
            made[name] = _made(struct_class, value)
    return cls(**made)


def _partitions(**fields: Any) -> list[dict[str, Any]]:
    """Return every partition of a topic. `name` is the field of the partition index."""
    (index,) = [name for name, value in fields.items() if value is None]
    return [{**fields, index: number} for number in range(PARTITIONS)]


def _topics(key: str = "name", **fields: Any) -> list[dict[str, Any]]:
    return [{key: name, **fields} for name in topic_names()]


def _unknown(what: str) -> list[str]:
    return [f"no-such-{what}-{number:04}" for number in range(_MANY)]


def _resources(configs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return _topics("resource_name", resource_type=_TOPIC_RESOURCE, configs=configs)


_ALL = list(range(PARTITIONS))
_GROUP: Fields = {"group_id": "storm"}
_MEMBER: Fields = {**_GROUP, "generation_id": 1, "member_id": "nobody"}
_RETENTION = {"name": "retention.ms", "value": "600000"}


def storms() -> dict[str, tuple[int, Fields]]:
    """Return version and fields by API, in the order of the storms: commits before fetches of committed offsets."""
    return {**_reads(), **_changes(), **_of_offsets(), **_of_groups(), **_of_transactions(), **_of_security()}


def _reads() -> dict[str, tuple[int, Fields]]:
    return {
        "API_VERSIONS": (3, {"client_software_name": "storm", "client_software_version": "1"}),
        "METADATA": (12, {"topics": None}),
        "DESCRIBE_CLUSTER": (1, {"include_cluster_authorized_operations": True}),
        "DESCRIBE_TOPIC_PARTITIONS": (0, {"topics": _topics(), "response_partition_limit": TOPICS * PARTITIONS}),
        "DESCRIBE_CONFIGS": (4, {"resources": _resources_of_all(), "include_synonyms": True}),
        "DESCRIBE_LOG_DIRS": (4, {"topics": None}),
        "DESCRIBE_QUORUM": (
            2,
            {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
        ),
        "GET_TELEMETRY_SUBSCRIPTIONS": (0, {"client_instance_id": bytes(range(16))}),
        "LIST_CONFIG_RESOURCES": (1, {}),
        "LIST_OFFSETS": (7, {"replica_id": -1, "topics": _topics(partitions=_partitions(partition_index=None))}),
        "OFFSET_FOR_LEADER_EPOCH": (
            4,
            {"replica_id": -2, "topics": _topics("topic", partitions=_partitions(partition=None, leader_epoch=0))},
        ),
        "FETCH": (
            11,
            {"replica_id": -1, "max_wait_ms": 0, "topics": _topics("topic", partitions=_partitions(partition=None))},
        ),
        "PRODUCE": (9, {"acks": -1, "timeout_ms": 10_000, "topic_data": [_corrupt_batch()]}),
    }


def _changes() -> dict[str, tuple[int, Fields]]:
    return {
        "PUSH_TELEMETRY": (
            0,
            {
                "client_instance_id": bytes(range(16)),
                "subscription_id": 1,
                "terminating": False,
                "compression_type": 0,
                "metrics": bytes(100_000),
            },
        ),
        "ADD_RAFT_VOTER": (
            1,
            {
                "voter_id": 7,
                "voter_directory_id": bytes(range(16)),
                "listeners": [{"name": name, "host": "no.such.host", "port": 1} for name in _unknown("listener")],
            },
        ),
        "REMOVE_RAFT_VOTER": (0, {"voter_id": 7, "voter_directory_id": bytes(range(16))}),
        "CREATE_TOPICS": (
            7,
            {
                "topics": [{"name": n, "num_partitions": 4, "replication_factor": 1} for n in _unknown("topic")],
                "timeout_ms": 10_000,
                "validate_only": True,
            },
        ),
        "CREATE_PARTITIONS": (
            3,
            {"topics": _topics(count=2 * PARTITIONS, assignments=None), "timeout_ms": 10_000, "validate_only": True},
        ),
        "DELETE_TOPICS": (5, {"topic_names": _unknown("topic"), "timeout_ms": 10_000}),
        "DELETE_RECORDS": (
            2,
            {"topics": _topics(partitions=_partitions(partition_index=None, offset=0)), "timeout_ms": 10_000},
        ),
        "ALTER_CONFIGS": (2, {"resources": _resources([_RETENTION]), "validate_only": True}),
        "INCREMENTAL_ALTER_CONFIGS": (1, {"resources": _resources([_RETENTION]), "validate_only": True}),
        "ALTER_REPLICA_LOG_DIRS": (
            2,
            {"dirs": [{"path": "/no/such/directory", "topics": _topics(partitions=_ALL)}]},
        ),
        "ELECT_LEADERS": (2, {"election_type": 0, "topic_partitions": None, "timeout_ms": 10_000}),
        "ALTER_PARTITION_REASSIGNMENTS": (
            0,
            {"topics": _topics(partitions=_partitions(partition_index=None, replicas=[])), "timeout_ms": 10_000},
        ),
        "LIST_PARTITION_REASSIGNMENTS": (0, {"topics": None}),
        "UNREGISTER_BROKER": (0, {"broker_id": 1_000_000}),
        "UPDATE_FEATURES": (
            1,
            {
                "feature_updates": [{"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}],
                "validate_only": True,
            },
        ),
    }


def _of_transactions() -> dict[str, tuple[int, Fields]]:
    """Return the requests for an unused transactional id: nothing is added or ended."""
    producer = {"transactional_id": "storm", "producer_id": 1, "producer_epoch": 0}
    return {
        "ADD_PARTITIONS_TO_TXN": (
            3,
            {
                "v3_and_below_transactional_id": "storm",
                "v3_and_below_producer_id": 1,
                "v3_and_below_producer_epoch": 0,
                "v3_and_below_topics": _topics(partitions=_ALL),
            },
        ),
        "ADD_OFFSETS_TO_TXN": (3, {**producer, **_GROUP}),
        "END_TXN": (3, {**producer, "committed": True}),
        "TXN_OFFSET_COMMIT": (
            3,
            {**producer, **_GROUP, "topics": _topics(partitions=_partitions(partition_index=None, committed_offset=0))},
        ),
        "WRITE_TXN_MARKERS": (
            1,
            {
                "markers": [
                    {
                        "producer_id": 1,
                        "producer_epoch": 0,
                        "transaction_result": False,
                        "topics": [{"name": name, "partition_indexes": [0]} for name in _unknown("topic")],
                    }
                ]
            },
        ),
        "DESCRIBE_PRODUCERS": (0, {"topics": _topics(partition_indexes=_ALL)}),
        "DESCRIBE_TRANSACTIONS": (0, {"transactional_ids": _unknown("transaction")}),
        "LIST_TRANSACTIONS": (1, {"state_filters": ["Ongoing"], "producer_id_filters": list(range(_MANY))}),
    }


def _of_offsets() -> dict[str, tuple[int, Fields]]:
    return {
        "INIT_PRODUCER_ID": (4, {"transactional_id": None, "transaction_timeout_ms": 60_000}),
        "FIND_COORDINATOR": (4, {"key_type": 0, "coordinator_keys": _unknown("group")}),
        "OFFSET_COMMIT": (
            8,
            {
                **_GROUP,
                "generation_id_or_member_epoch": -1,
                "member_id": "",
                "topics": _topics(partitions=_partitions(partition_index=None, committed_offset=0)),
            },
        ),
        "OFFSET_FETCH": (8, {"groups": [{**_GROUP, "topics": None}]}),
        "OFFSET_DELETE": (0, {**_GROUP, "topics": _topics(partitions=_partitions(partition_index=None))}),
    }


def _of_groups() -> dict[str, tuple[int, Fields]]:
    return {
        "JOIN_GROUP": (
            7,
            {
                **_GROUP,
                "session_timeout_ms": 10_000,
                "rebalance_timeout_ms": 10_000,
                "member_id": "nobody",
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": bytes(2**20)}],
            },
        ),
        "SYNC_GROUP": (
            5,
            {
                **_MEMBER,
                "protocol_type": "consumer",
                "protocol_name": "range",
                "assignments": [{"member_id": name, "assignment": bytes(1024)} for name in _unknown("member")],
            },
        ),
        "HEARTBEAT": (4, _MEMBER),
        "LEAVE_GROUP": (4, {**_GROUP, "members": [{"member_id": name} for name in _unknown("member")]}),
        "LIST_GROUPS": (4, {}),
        "DESCRIBE_GROUPS": (5, {"groups": _unknown("group")}),
        "DELETE_GROUPS": (2, {"groups_names": _unknown("group")}),
        "CONSUMER_GROUP_HEARTBEAT": (
            1,
            {
                "group_id": "storm-modern",
                "member_id": "AAAAAAAAAAAAAAAAAAAAAA",
                "member_epoch": 0,
                "rebalance_timeout_ms": 10_000,
                "subscribed_topic_names": topic_names(),
                "topic_partitions": [],
            },
        ),
        "CONSUMER_GROUP_DESCRIBE": (1, {"group_ids": _unknown("group")}),
        "STREAMS_GROUP_HEARTBEAT": (
            1,
            {
                "group_id": "storm-streams",
                "member_id": "AAAAAAAAAAAAAAAAAAAAAA",
                "member_epoch": 0,
                "rebalance_timeout_ms": 10_000,
                "topology": {"subtopologies": [{"subtopology_id": "0", "source_topics": topic_names()}]},
                "active_tasks": [],
                "standby_tasks": [],
                "warmup_tasks": [],
                "process_id": "storm",
            },
        ),
        "STREAMS_GROUP_DESCRIBE": (1, {"group_ids": _unknown("group")}),
    }


def _of_security() -> dict[str, tuple[int, Fields]]:
    return {
        "SASL_HANDSHAKE": (1, {"mechanism": "PLAIN"}),
        "SASL_AUTHENTICATE": (2, {"auth_bytes": bytes(1024)}),
        "DESCRIBE_USER_SCRAM_CREDENTIALS": (0, {"users": [{"name": name} for name in _unknown("user")]}),
        "ALTER_USER_SCRAM_CREDENTIALS": (
            0,
            {"deletions": [{"name": name, "mechanism": 1} for name in _unknown("user")], "upsertions": []},
        ),
        "DESCRIBE_ACLS": (
            3,
            {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1},
        ),
        "DESCRIBE_CLIENT_QUOTAS": (1, {"components": [], "strict": False}),
        "ALTER_CLIENT_QUOTAS": (1, {"entries": [], "validate_only": False}),
        "CREATE_ACLS": (3, {"creations": []}),
        "CREATE_DELEGATION_TOKEN": (3, {"renewers": [], "max_lifetime_ms": -1}),
        "RENEW_DELEGATION_TOKEN": (2, {"hmac": bytes(64), "renew_period_ms": -1}),
        "EXPIRE_DELEGATION_TOKEN": (2, {"hmac": bytes(64), "expiry_time_period_ms": -1}),
        "DESCRIBE_DELEGATION_TOKEN": (
            3,
            {"owners": [{"principal_type": "User", "principal_name": name} for name in _unknown("user")]},
        ),
        "DELETE_ACLS": (3, {"filters": []}),
    }


def _resources_of_all() -> list[dict[str, Any]]:
    return _topics("resource_name", resource_type=_TOPIC_RESOURCE, configuration_keys=None)


def _corrupt_batch() -> dict[str, Any]:
    """Return a batch of 1 MiB with a wrong checksum: it is received and checked, but not appended."""
    body = bytes(1_000_000)
    head = struct.pack(">qiibIhiqqqhii", 0, 49 + len(body), 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    return {"name": topic_names()[0], "partition_data": [{"index": 0, "records": head + body}]}
