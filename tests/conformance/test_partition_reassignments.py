"""AlterPartitionReassignments and ListPartitionReassignments, where one broker is all there is to name.

`test_alter_replica_log_dirs.py` has Kafka's tool, which also moves replicas between directories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kafka
import pytest
from kafka.errors import (
    InvalidReplicationAssignmentError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)

from pybench.peers import java
from tests.conformance.conftest import Server, Topic, leads_all
from tests.support import java_oracle, programs
from tests.support.wire import Wire

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REPLICA_ASSIGNMENT = 39
NO_REASSIGNMENT_IN_PROGRESS = 85
REMOVED = 4711
"""A broker that there is not."""

Requested = list[tuple[str, list[tuple[int, list[int] | None]]]]
Results = list[tuple[str, list[tuple[int, int, str | None]]]]


def reassign(wire: Wire, requested: Requested, *, version: int = 1, allow: bool = True) -> Results:
    """What became of each partition; version 0 cannot forbid another number of replicas."""
    topics = [
        {"name": name, "partitions": [{"partition_index": index, "replicas": some} for index, some in partitions]}
        for name, partitions in requested
    ]
    allowing = {"allow_replication_factor_change": allow} if version >= 1 else {}
    response = wire.call("AlterPartitionReassignments", version, timeout_ms=10_000, topics=topics, **allowing)
    assert (response.throttle_time_ms, response.error_code, response.error_message) == (0, 0, None)
    if version >= 1:
        assert response.allow_replication_factor_change is allow
    return [
        (topic.name, [(one.partition_index, one.error_code, one.error_message) for one in topic.partitions])
        for topic in response.responses
    ]


def in_progress(wire: Wire, requested: list[tuple[str, list[int]]] | None) -> list[Any]:
    """What ListPartitionReassignments returns of these partitions, None for all."""
    topics = (
        None if requested is None else [{"name": name, "partition_indexes": indices} for name, indices in requested]
    )
    response = wire.call("ListPartitionReassignments", 0, timeout_ms=10_000, topics=topics)
    assert (response.throttle_time_ms, response.error_code, response.error_message) == (0, 0, None)
    return list(response.topics)


@pytest.fixture
def node(wire: Wire) -> int:
    """The only broker."""
    brokers = wire.call("Metadata", 12, topics=[]).brokers
    if len(brokers) > 1:
        pytest.skip("about what one broker can be asked; several are those of tests/cluster/test_moves.py")
    return int(brokers[0].node_id)


def standing(wire: Wire, name: str) -> list[tuple[int, int, int, list[int], list[int]]]:
    """Each partition's number, leader, leader epoch, replicas and in-sync replicas."""
    (topic,) = wire.call("Metadata", 12, topics=[{"name": name}]).topics
    return sorted(
        (
            part.partition_index,
            part.leader_id,
            part.leader_epoch,
            list(part.replica_nodes),
            list(part.isr_nodes),
        )
        for part in topic.partitions
    )


@pytest.mark.parametrize(("version", "allow"), [(0, True), (1, True), (1, False)])
def test_replicas_that_a_partition_has_are_taken_and_done_at_once(
    wire: Wire, create: Callable[..., Topic], node: int, version: int, allow: bool
) -> None:
    name = create(partitions=2).name
    before = standing(wire, name)
    requested: Requested = [(name, [(1, [node]), (0, [node])]), (name, [(1, [node])]), (name, [])]
    assert reassign(wire, requested, version=version, allow=allow) == [
        (name, [(1, 0, None), (0, 0, None)]),
        (name, [(1, 0, None)]),
        (name, []),
    ]
    assert in_progress(wire, None) == []
    assert in_progress(wire, [(name, [0, 1])]) == []
    assert standing(wire, name) == before
    assert leads_all(wire, name, 2)


@pytest.mark.parametrize("version", [0, 1])
def test_each_partition_is_refused_by_itself_in_kafkas_words(
    wire: Wire, create: Callable[..., Topic], node: int, version: int
) -> None:
    name = create(partitions=6).name
    before = standing(wire, name)
    prefix = "The manual partition assignment includes"
    lost = f"{prefix} broker {REMOVED}, but no such broker is registered."
    wrong: dict[int, tuple[list[int], str]] = {
        0: ([], f"{prefix} an empty replica list."),
        1: ([node, node], f"{prefix} the broker {node} more than once."),
        2: ([node, REMOVED], lost),
        3: ([REMOVED, REMOVED], lost),
        4: ([-1, node], f"{prefix} broker -1, but no such broker is registered."),
    }
    requested: Requested = [
        (name, [*((index, replicas) for index, (replicas, _) in wrong.items()), (5, [node]), (9, [node])]),
        ("no-such-topic", [(0, [REMOVED])]),
    ]
    assert reassign(wire, requested, version=version) == [
        (
            name,
            [
                *((index, INVALID_REPLICA_ASSIGNMENT, words) for index, (_, words) in wrong.items()),
                (5, 0, None),
                (9, UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:9."),
            ],
        ),
        ("no-such-topic", [(0, UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named no-such-topic.")]),
    ]
    assert in_progress(wire, None) == []
    assert standing(wire, name) == before


@pytest.mark.parametrize("version", [0, 1])
def test_where_nothing_is_in_progress_nothing_is_cancelled(wire: Wire, topic: Topic, version: int) -> None:
    requested: Requested = [(topic.name, [(0, None), (3, None)]), ("no-such-topic", [(1, None)])]
    assert reassign(wire, requested, version=version) == [
        (
            topic.name,
            [
                (0, NO_REASSIGNMENT_IN_PROGRESS, None),
                (3, UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic.name}:3."),
            ],
        ),
        ("no-such-topic", [(1, UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named no-such-topic.")]),
    ]


def test_nothing_asked_is_nothing_returned(wire: Wire, topic: Topic) -> None:
    nothing = wire.call("AlterPartitionReassignments", 1, timeout_ms=0, topics=[])
    assert (nothing.error_code, nothing.error_message, list(nothing.responses)) == (0, "", [])
    assert in_progress(wire, []) == []
    assert in_progress(wire, [(topic.name, []), (topic.name, [0, 7, -1]), ("no-such-topic", [0])]) == []


def test_the_admin_of_kafka_python_reassigns(server: Server, topic: Topic, node: int) -> None:
    requested = {
        kafka.TopicPartition(topic.name, 0): [node],
        kafka.TopicPartition(topic.name, 7): [node],
        kafka.TopicPartition("no-such-topic", 0): None,
    }
    admin = kafka.KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    try:
        done = admin.alter_partition_reassignments(requested)
        lost = admin.alter_partition_reassignments({kafka.TopicPartition(topic.name, 0): [node, REMOVED]})
        cancelled = admin.alter_partition_reassignments({kafka.TopicPartition(topic.name, 0): None})
        listed = [admin.list_partition_reassignments(some) for some in (None, {topic.name: [0]})]
    finally:
        admin.close()
    assert list(done.values()) == [None, UnknownTopicOrPartitionError, UnknownTopicOrPartitionError]
    assert list(lost.values()) == [InvalidReplicationAssignmentError]
    assert list(cancelled.values()) == [NoReassignmentInProgressError]
    assert listed == [{}, {}]


@pytest.mark.java
def test_the_admin_of_java_reassigns(server: Server, topic: Topic, node: int) -> None:
    programs.kafka_tools()
    words = ("0", str(node), "0", f"{node},{REMOVED}", "0", "cancel", "5", str(node))
    at = (server.bootstrap_servers, "false", topic.name)
    ran = java.run_java_tool(java.build_client("Reassigner", java_oracle.SOURCES), *at, *words)
    assert ran.returncode == 0, ran.stderr
    lost = f"The manual partition assignment includes broker {REMOVED}, but no such broker is registered."
    assert ran.stdout.splitlines() == [
        "taken",
        f"InvalidReplicaAssignmentException: {lost}",
        "NoReassignmentInProgressException: No partition reassignment is in progress.",
        f"UnknownTopicOrPartitionException: Unable to find partition {topic.name}:5.",
        "0 in progress",
    ]
