"""A transaction's coordinator is killed at each step of its end: the next one goes on from what the log has.

Three brokers: the coordinator, the other replica of its partition of `__transaction_state`, and one that leads a
partition and is paused where a step is to be the last one. The controller is not killed: it sees the death at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import pytest

from pybroker.client import Admin, NewTopic, Producer
from pybroker.coordinator.runtime.partitioning import partition_of
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.testing import Cluster
from tests.conformance.transactions import see
from tests.support.conditions import wait_until
from tests.support.wire import Wire

pytestmark = pytest.mark.process

WAIT_S = 60.0
NEVER_MS = 600_000
SESSION_MS = 20_000
"""Far longer than any pause."""
LED_BY_OTHER, LED_BY_NEXT = 0, 1
"""Partitions of each test's topic."""
_numbers = count()


class Roles(NamedTuple):
    """Which broker is what."""

    partition: int
    """Of `__transaction_state`."""
    coordinator: int
    next: int
    """Has the transactions as well."""
    other: int


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, broker_session_timeout_ms=SESSION_MS, replica_lag_time_max_ms=NEVER_MS) as running:
        first, second, third = running.brokers
        pairs = {0: [first, second], 1: [second, third], 2: [third, first]}
        with Admin(running.bootstrap_servers) as admin:
            # What is decided waits for both replicas while both are in sync; the one that is left goes on alone.
            config = {"cleanup.policy": "compact", "min.insync.replicas": "1"}
            admin.create_topics([NewTopic(STATE_TOPIC, assignments=pairs, configs=config)])
            admin.wait_for_leaders(STATE_TOPIC)
        yield running


@pytest.fixture
def roles(cluster: Cluster) -> Iterator[Roles]:
    """Who is what in this test, with all of them running."""
    for broker in set(cluster.brokers) - set(cluster.running):
        cluster.start(broker)
    for partition in range(3):
        cluster.wait_in_sync(STATE_TOPIC, partition)
    following = cluster.controller()
    partition = next(index for index in range(3) if following in cluster.in_sync(STATE_TOPIC, index))
    (coordinator,) = set(cluster.in_sync(STATE_TOPIC, partition)) - {following}
    (other,) = set(cluster.brokers) - {following, coordinator}
    if cluster.leader(STATE_TOPIC, partition) != coordinator:
        cluster.move_leader(STATE_TOPIC, partition, coordinator)
    try:
        yield Roles(partition, coordinator, following, other)
    finally:
        for broker in (following, other):
            cluster.resume(broker)


@pytest.fixture
def topic(cluster: Cluster, roles: Roles) -> str:
    """It has the name of the transactional id, which the coordinator has."""
    name = next(name for name in map("t-{}".format, _numbers) if partition_of(name, 3) == roles.partition)
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, assignments={LED_BY_OTHER: [roles.other], LED_BY_NEXT: [roles.next]})])
        admin.wait_for_leaders(name)
    return name


@pytest.fixture
def producer(cluster: Cluster, topic: str) -> Iterator[Producer]:
    with Producer(cluster.bootstrap_servers, {"transactional.id": topic, "linger.ms": 0}) as made:
        made.init_transactions()
        yield made


def begin(producer: Producer, topic: str, *partitions: int) -> None:
    """Begin a transaction with a record in each of these partitions."""
    producer.begin_transaction()
    for partition in partitions:
        producer.send(topic, b"%d" % partition, partition=partition)
    producer.flush()


def values_of(cluster: Cluster, broker: int, topic: str, partition: int) -> list[bytes]:
    """What a read_committed reader gets of a partition's leader."""
    with Wire(cluster.address(broker)) as wire:
        return see(wire, topic, partition=partition).committed


def is_over(cluster: Cluster, broker: int, transactional_id: str, state: str) -> bool:
    """Whether this coordinator says so."""
    with Wire(cluster.address(broker)) as wire:
        (found,) = wire.call("DescribeTransactions", 0, transactional_ids=[transactional_id]).transaction_states
        return bool(found.error_code == 0 and found.transaction_state == state)


def check_end(cluster: Cluster, roles: Roles, topic: str, *partitions: int, commits: bool = True) -> None:
    """The next coordinator completes the transaction: each partition has its record once, or none."""
    state = "CompleteCommit" if commits else "CompleteAbort"
    wait_until(lambda: is_over(cluster, roles.next, topic, state), within=WAIT_S, what=f"{topic} is {state}")
    leaders = {LED_BY_OTHER: roles.other, LED_BY_NEXT: roles.next}
    for partition in partitions:
        expected = [b"%d" % partition] if commits else []
        assert values_of(cluster, leaders[partition], topic, partition) == expected


def test_before_the_end_is_decided(cluster: Cluster, roles: Roles, topic: str, producer: Producer) -> None:
    begin(producer, topic, LED_BY_OTHER, LED_BY_NEXT)
    cluster.kill(roles.coordinator)
    producer.commit_transaction(WAIT_S)
    check_end(cluster, roles, topic, LED_BY_OTHER, LED_BY_NEXT)


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_between_the_decision_and_the_first_marker(
    cluster: Cluster, roles: Roles, topic: str, producer: Producer, commits: bool
) -> None:
    begin(producer, topic, LED_BY_OTHER)
    cluster.pause(roles.other)
    end(producer, commits)
    cluster.kill(roles.coordinator)
    cluster.resume(roles.other)
    check_end(cluster, roles, topic, LED_BY_OTHER, commits=commits)


def test_between_two_markers(cluster: Cluster, roles: Roles, topic: str, producer: Producer) -> None:
    begin(producer, topic, LED_BY_OTHER, LED_BY_NEXT)
    cluster.pause(roles.other)
    end(producer, commits=True)
    wait_until(
        lambda: values_of(cluster, roles.next, topic, LED_BY_NEXT) == [b"%d" % LED_BY_NEXT],
        within=WAIT_S,
        what="the marker of the broker that runs is written",
    )
    cluster.kill(roles.coordinator)
    cluster.resume(roles.other)
    check_end(cluster, roles, topic, LED_BY_OTHER, LED_BY_NEXT)


def test_between_the_last_marker_and_the_completion(
    cluster: Cluster, roles: Roles, topic: str, producer: Producer
) -> None:
    """What the coordinator notes at last is nowhere but in its log, for its follower is paused."""
    begin(producer, topic, LED_BY_OTHER)
    cluster.pause(roles.other)
    end(producer, commits=True)
    cluster.pause(roles.next)
    cluster.resume(roles.other)
    wait_until(
        lambda: values_of(cluster, roles.other, topic, LED_BY_OTHER) == [b"%d" % LED_BY_OTHER],
        within=WAIT_S,
        what="the marker is written",
    )
    cluster.kill(roles.coordinator)
    cluster.resume(roles.next)
    check_end(cluster, roles, topic, LED_BY_OTHER)


def end(producer: Producer, commits: bool) -> None:
    """Have the coordinator decide; it answers when that is committed."""
    if commits:
        producer.commit_transaction(WAIT_S)
    else:
        producer.abort_transaction(WAIT_S)
