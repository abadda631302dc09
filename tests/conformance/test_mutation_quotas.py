"""Partitions that a client may have made and deleted in a second are limited as by Kafka (KIP-599)."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.client.administration.admin import Admin
from tests.conformance.conftest import AGAINST_KAFKA, Server
from tests.support.conditions import wait_until
from tests.support.wire import Wire, request

NONE, TOPIC_EXISTS, INVALID_PARTITIONS, THROTTLING_QUOTA_EXCEEDED = 0, 36, 37, 89
EXCEEDED = "The throttling quota has been exceeded."


@pytest.fixture
def limited(server: Server, topic_name: str) -> Any:
    """A client that may make and delete a partition a second, eleven at once."""
    with Admin(server.bootstrap_servers) as admin:
        entity = {"client-id": topic_name}
        admin.alter_client_quotas(entity, {"controller_mutation_rate": 1})
        wait_until(lambda: admin.describe_client_quotas(entity) != {}, within=60, what="the quota is known")
        with Wire(server.bootstrap_servers, client_id=topic_name) as wire:
            yield wire
        admin.alter_client_quotas(entity, {"controller_mutation_rate": None})


def call(server: Server, client_id: str, api: str, version: int, **fields: Any) -> Any:
    """Ask by a connection of its own."""
    with Wire(server.bootstrap_servers, client_id=client_id) as wire:
        return wire.call(api, version, **fields)


def topics(**partitions: int) -> list[dict[str, Any]]:
    return [
        {"name": name, "num_partitions": count, "replication_factor": 1, "assignments": [], "configs": []}
        for name, count in partitions.items()
    ]


def test_a_client_that_knows_the_error_is_refused_while_it_is_in_debt(limited: Wire, topic_name: str) -> None:
    first, second, third = (f"{topic_name}-{number}" for number in range(3))
    made = limited.call("CreateTopics", 7, topics=topics(**{first: 60}), timeout_ms=10_000, validate_only=False)
    assert ([one.error_code for one in made.topics], made.throttle_time_ms) == ([NONE], 0)
    wrong = topics(**{second: 1, third: 0, first: 1})
    refused = limited.call("CreateTopics", 7, topics=wrong, timeout_ms=10_000, validate_only=False)
    codes = {one.name: one.error_code for one in refused.topics}
    assert codes == {second: THROTTLING_QUOTA_EXCEEDED, third: INVALID_PARTITIONS, first: TOPIC_EXISTS}
    # Kafka leaves words out that only say what the code says.
    words = None if AGAINST_KAFKA else EXCEEDED
    assert [one.error_message for one in refused.topics if one.name == second] == [words]
    assert 20_000 < refused.throttle_time_ms <= 49_000


def test_nothing_further_is_answered_while_a_client_is_to_wait(limited: Wire, server: Server, topic_name: str) -> None:
    more = topics(**{f"{topic_name}-1": 60}), topics(**{f"{topic_name}-2": 1})
    for topic in more:
        response = limited.call("CreateTopics", 7, topics=topic, timeout_ms=10_000, validate_only=False)
    assert response.throttle_time_ms > 20_000
    limited.send(request("Metadata", 9, topics=[]))
    for _ in range(3):
        assert call(server, topic_name, "Metadata", 9, topics=[]).brokers, "another connection does not wait"
    assert limited.is_silent()


def test_a_client_that_has_waited_is_answered(limited: Wire, topic_name: str) -> None:
    made = limited.call("CreateTopics", 5, topics=topics(**{topic_name: 12}), timeout_ms=10_000, validate_only=False)
    assert 0 < made.throttle_time_ms <= 1000
    assert limited.call("Metadata", 9, topics=[]).brokers


def test_more_partitions_and_deletions_are_counted_too(limited: Wire, server: Server, topic_name: str) -> None:
    made = limited.call("CreateTopics", 7, topics=topics(**{topic_name: 60}), timeout_ms=10_000, validate_only=False)
    assert [one.error_code for one in made.topics] == [NONE]
    # A connection of its own for each: nothing is read from one whose client is to wait.
    more = call(
        server,
        topic_name,
        "CreatePartitions",
        3,
        topics=[{"name": topic_name, "count": 61, "assignments": None}],
        timeout_ms=10_000,
        validate_only=False,
    )
    assert [one.error_code for one in more.results] == [THROTTLING_QUOTA_EXCEEDED]
    deleted = [{"name": topic_name, "topic_id": None}]
    removed = call(server, topic_name, "DeleteTopics", 6, topics=deleted, timeout_ms=10_000)
    assert [one.error_code for one in removed.responses] == [THROTTLING_QUOTA_EXCEEDED]


def test_an_older_client_is_served_and_asked_to_wait(limited: Wire, topic_name: str) -> None:
    made = limited.call("CreateTopics", 5, topics=topics(**{topic_name: 30}), timeout_ms=10_000, validate_only=False)
    assert [one.error_code for one in made.topics] == [NONE]
    assert 15_000 < made.throttle_time_ms <= 19_000
