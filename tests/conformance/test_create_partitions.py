"""CreatePartitions: topics that grow, by number and by assignment."""

from __future__ import annotations

from typing import Any

import confluent_kafka.admin
import pytest

from tests.conformance.conftest import Server, Topic, leads_all
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce, produced

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_PARTITIONS = 37
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_REQUEST = 42


def item(name: str, count: int, *assignments: list[int]) -> dict[str, Any]:
    """One topic of a request; without assignments the controller chooses."""
    assigned = [{"broker_ids": brokers} for brokers in assignments] or None
    return {"name": name, "count": count, "assignments": assigned}


def enlarge(wire: Wire, *items: dict[str, Any], version: int = 3, validate_only: bool = False) -> dict[str, Any]:
    """The outcomes by topic name."""
    response = wire.call(
        "CreatePartitions", version, topics=list(items), timeout_ms=10_000, validate_only=validate_only
    )
    return {topic.name: topic for topic in response.results}


def served(wire: Wire, name: str, count: int) -> None:
    """Make sure that every partition takes records."""
    # Brokers of Kafka, and those that do not lead the quorum, learn of partitions after CreatePartitions has answered.
    wait_until(lambda: leads_all(wire, name, count), within=60, what=f"{name} has {count} partitions")
    for partition in range(count):
        assert produced(wire.query(produce(name, batch_of(b"v"), partition=partition))).error_code == 0
    assert produced(wire.query(produce(name, batch_of(b"v"), partition=count))).error_code != 0


def count_of(wire: Wire, name: str) -> int:
    return len(wire.call("Metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False).topics[0].partitions)


@pytest.mark.parametrize("version", range(4))
def test_every_version_enlarges(wire: Wire, server: Server, topic: Topic, version: int) -> None:
    # Where there are several brokers, the one that is asked is to lead.
    chosen = [] if len(server.brokers) == 1 else [list(server.brokers)] * 2
    outcome = enlarge(wire, item(topic.name, 3, *chosen), version=version)[topic.name]
    assert (outcome.error_code, outcome.error_message) == (0, None)
    served(wire, topic.name, 3)


def test_new_partitions_go_where_they_are_assigned(wire: Wire, server: Server, topic: Topic) -> None:
    replicas = list(server.brokers)
    assert enlarge(wire, item(topic.name, 3, replicas, replicas))[topic.name].error_code == 0
    served(wire, topic.name, 3)


def test_validate_only_makes_nothing(wire: Wire, topic: Topic) -> None:
    assert enlarge(wire, item(topic.name, 3), validate_only=True)[topic.name].error_code == 0
    assert count_of(wire, topic.name) == 1


WRONG: dict[str, tuple[int, tuple[list[int], ...], int, str]] = {
    "as many as there are": (1, (), INVALID_PARTITIONS, "Topic already has 1 partition(s)."),
    "fewer": (0, (), INVALID_PARTITIONS, "The topic {} currently has 1 partition(s); 0 would not be an increase."),
    "a broker that is not there": (
        2,
        ([99],),
        INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 99, but no such broker is registered.",
    ),
    "too few assignments": (
        4,
        ([1],),
        INVALID_REPLICA_ASSIGNMENT,
        "Attempted to add 3 additional partition(s), but only 1 assignment(s) were specified.",
    ),
    "no replicas": (
        2,
        ([],),
        INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    ),
    "a broker twice": (
        2,
        ([1, 1],),
        INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes the broker 1 more than once.",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_item_is_refused(wire: Wire, topic: Topic, what: str) -> None:
    count, assignments, code, words = WRONG[what]
    outcome = enlarge(wire, item(topic.name, count, *assignments))[topic.name]
    assert (outcome.error_code, outcome.error_message) == (code, words.format(topic.name))
    assert count_of(wire, topic.name) == 1


def test_a_topic_that_is_not_there_or_is_named_twice_harms_no_other(wire: Wire, topic: Topic) -> None:
    outcomes = enlarge(wire, item("no-such-topic", 2), item(topic.name, 2))
    assert outcomes["no-such-topic"].error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert outcomes[topic.name].error_code == 0
    assert enlarge(wire, item(topic.name, 3), item(topic.name, 4))[topic.name].error_code == INVALID_REQUEST


def test_the_admin_of_confluent_kafka_enlarges(server: Server, wire: Wire, topic: Topic) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": server.bootstrap_servers})
    more = confluent_kafka.admin.NewPartitions(topic.name, 2, replica_assignment=[list(server.brokers)])
    admin.create_partitions([more])[topic.name].result(60)
    served(wire, topic.name, 2)
    assert count_of(wire, topic.name) == 2
