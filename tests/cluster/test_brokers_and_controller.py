"""What brokers of a cluster and its active controller say to each other, by processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Cluster

pytestmark = pytest.mark.process

NEVER_MS = 600_000
"""Longer than any test: what ends a session here is not its time."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, broker_session_timeout_ms=NEVER_MS) as cluster:
        yield cluster


def other_than(cluster: Cluster, node: int) -> int:
    return next(broker for broker in cluster.running if broker != node)


def test_a_client_sees_what_it_changed_by_way_of_the_broker_that_it_asked(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        with Admin(cluster.address(broker)) as admin:
            for number in range(5):
                name = f"t{broker}-{number}"
                admin.create_topics([NewTopic(name, 2, 3)])
                (found,) = admin.describe_topics([name])
                assert len(found.partitions) == 2
            admin.delete_topics([f"t{broker}-0"])
            assert f"t{broker}-0" not in admin.list_topics()


def test_a_broker_that_is_killed_is_fenced_by_its_death_and_may_come_back_at_once(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 6, 3)])
    victim = other_than(cluster, cluster.controller())
    cluster.kill(victim)
    for partition in range(6):
        cluster.wait_for_partition("t", partition, lambda it: it.leader not in (victim, -1))
    cluster.start(victim)
    with Admin(cluster.bootstrap_servers) as admin:
        assert victim in {broker.node_id for broker in admin.describe_cluster().brokers}


def test_a_broker_that_stops_hands_its_leadership_over(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 6, 3)])
    leaving = other_than(cluster, cluster.controller())
    cluster.stop(leaving)
    assert "the controller lets this broker stop" in cluster.log(leaving)
    for partition in range(6):
        assert cluster.leader("t", partition) != leaving
    cluster.start(leaving)


def test_the_death_of_the_active_controller_costs_forwarded_requests_a_wait(cluster: Cluster) -> None:
    active = cluster.controller()
    with Admin(cluster.address(other_than(cluster, active))) as admin:
        cluster.kill(active)
        admin.create_topics([NewTopic("t", 2, 2)])
        (found,) = admin.describe_topics(["t"])
        assert len(found.partitions) == 2
