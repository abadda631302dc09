"""ElectLeaders: on one broker nobody else can lead, and the answer says so for each partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import kafka
import pytest

from tests.conformance.conftest import Server, Topic
from tests.support.wire import Wire

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_REQUEST = 42
ELECTION_NOT_NEEDED = 84
NOT_NEEDED = "Leader election not needed for topic partition."
PREFERRED, UNCLEAN = 0, 1

Results = list[tuple[str, list[tuple[int, int, str | None]]]]


def elect(wire: Wire, requested: list[tuple[str, list[int]]] | None, *, version: int = 2, kind: int = PREFERRED) -> Any:
    """An answer; version 0 knows one kind of election only."""
    topics = None if requested is None else [{"topic": name, "partitions": indices} for name, indices in requested]
    chosen = {"election_type": kind} if version >= 1 else {}
    return wire.call("ElectLeaders", version, topic_partitions=topics, timeout_ms=10_000, **chosen)


def results_of(response: Any) -> Results:
    return [
        (topic.topic, [(one.partition_id, one.error_code, one.error_message) for one in topic.partition_result])
        for topic in response.replica_election_results
    ]


@pytest.mark.parametrize(
    ("version", "kind"), [(0, PREFERRED), (1, PREFERRED), (1, UNCLEAN), (2, PREFERRED), (2, UNCLEAN)]
)
def test_what_has_a_leader_needs_no_election_and_what_is_not_there_has_none(
    wire: Wire, create: Callable[..., Topic], version: int, kind: int
) -> None:
    name = create(partitions=2).name
    requested = [(name, [1, 0, 9]), ("no-such-topic", [0, 3]), (name, [1]), (name, [])]
    response = elect(wire, requested, version=version, kind=kind)
    assert results_of(response) == [
        (
            name,
            [
                (1, ELECTION_NOT_NEEDED, NOT_NEEDED),
                (0, ELECTION_NOT_NEEDED, NOT_NEEDED),
                (9, UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-9"),
            ],
        ),
        (
            "no-such-topic",
            [
                (0, UNKNOWN_TOPIC_OR_PARTITION, "No such topic as no-such-topic"),
                (3, UNKNOWN_TOPIC_OR_PARTITION, "No such topic as no-such-topic"),
            ],
        ),
        (name, [(1, ELECTION_NOT_NEEDED, NOT_NEEDED)]),
        (name, []),
    ]
    assert response.throttle_time_ms == 0
    if version >= 1:
        assert response.error_code == 0


@pytest.mark.parametrize("version", range(3))
def test_of_all_partitions_those_that_have_a_leader_are_not_listed(wire: Wire, topic: Topic, version: int) -> None:
    response = elect(wire, None, version=version)
    mine = [one for one in results_of(response) if one[0] == topic.name]
    assert mine == [(topic.name, [])]


def test_nothing_asked_is_nothing_returned(wire: Wire, topic: Topic) -> None:
    for kind in (PREFERRED, UNCLEAN, 7):
        response = elect(wire, [], kind=kind)
        assert (response.error_code, results_of(response)) == (0, [])


@pytest.mark.parametrize("kind", [2, -1])
@pytest.mark.parametrize("version", [1, 2])
def test_a_kind_of_election_that_there_is_not_is_refused(wire: Wire, topic: Topic, version: int, kind: int) -> None:
    words = f"Unknown election type {kind}"
    response = elect(wire, [(topic.name, [0, 7]), ("no-such-topic", [1])], version=version, kind=kind)
    assert response.error_code == INVALID_REQUEST
    assert results_of(response) == [
        (topic.name, [(0, INVALID_REQUEST, words), (7, INVALID_REQUEST, words)]),
        ("no-such-topic", [(1, INVALID_REQUEST, words)]),
    ]
    response = elect(wire, None, version=version, kind=kind)
    assert (response.error_code, results_of(response)) == (INVALID_REQUEST, [])


@pytest.mark.parametrize("kind", confluent_kafka.ElectionType)
def test_the_admin_of_confluent_kafka_elects(server: Server, topic: Topic, kind: confluent_kafka.ElectionType) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": server.bootstrap_servers})
    requested = [confluent_kafka.TopicPartition(topic.name, index) for index in (0, 5)]
    outcomes = admin.elect_leaders(kind, requested).result(60)
    assert {one.partition: error.code() for one, error in outcomes.items()} == {
        0: ELECTION_NOT_NEEDED,
        5: UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_the_admin_of_kafka_python_elects(server: Server, topic: Topic, kind: int) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    try:
        one = admin.elect_leaders(kind, {topic.name: [0]}).replica_election_results
        # The client names every partition itself where it is given none.
        every = admin.elect_leaders(kind).replica_election_results
    finally:
        admin.close()
    for results in (one, every):
        (mine,) = [result for result in results if result.topic == topic.name]
        assert [(part.partition_id, part.error_code) for part in mine.partition_result] == [(0, ELECTION_NOT_NEEDED)]
