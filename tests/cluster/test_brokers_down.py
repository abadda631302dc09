"""What is decided about partitions while one of their brokers is down is done by it when it comes back.

A replica that it does not have any more is set aside at its start: its directory is renamed, and nobody is served from
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client import Admin, NewTopic, Producer, TopicPartition
from pybroker.testing import Cluster
from tests.support.conditions import wait_until

pytestmark = pytest.mark.process
WAIT_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as running:
        yield running


def logs_of(cluster: Cluster, broker: int, topic: str) -> list[Path]:
    """The directories of a topic's partitions on a broker, but for those that are set aside."""
    data = cluster.directory / f"broker-{broker}" / "data"
    return sorted(path for path in data.glob(f"{topic}-*") if not path.name.endswith("-stray"))


def fill(cluster: Cluster, topic: str) -> None:
    with Producer(cluster.bootstrap_servers, {"acks": "all"}) as producer:
        assert producer.send(topic, b"record").result(WAIT_S).offset == 0


def test_a_topic_that_is_deleted_while_a_broker_is_down_goes_there_as_well(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("gone", 1, 3)])
        cluster.wait_in_sync("gone")
        fill(cluster, "gone")
        down = next(broker for broker in cluster.brokers if broker != cluster.leader("gone"))
        cluster.kill(down)
        admin.delete_topics(["gone"])
        wait_until(
            lambda: not any(logs_of(cluster, broker, "gone") for broker in cluster.running),
            within=WAIT_S,
            what="the files go where brokers run",
        )
        assert [one.name for one in logs_of(cluster, down, "gone")] == ["gone-0"]
        cluster.start(down)
        wait_until(
            lambda: not logs_of(cluster, down, "gone"), within=WAIT_S, what="it is gone where the broker was down"
        )
        assert "gone" not in admin.list_topics()


def test_a_replica_moves_away_from_a_broker_that_is_down(cluster: Cluster) -> None:
    moved = TopicPartition("moved", 0)
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("moved", 1, 2)])
        cluster.wait_in_sync("moved")
        fill(cluster, "moved")
        (topic,) = admin.describe_topics(["moved"])
        leader = cluster.leader("moved")
        (down,) = (broker for broker in topic.partitions[0].replicas if broker != leader)
        (spare,) = (broker for broker in cluster.brokers if broker not in topic.partitions[0].replicas)
        cluster.kill(down)
        admin.alter_partition_reassignments({moved: [leader, spare]})
        wait_until(
            lambda: not admin.list_partition_reassignments([moved]), within=WAIT_S, what="the reassignment has ended"
        )
        found = cluster.wait_for_partition("moved", 0, lambda it: set(it.isr) == {leader, spare})
        assert found.replicas == (leader, spare)
        assert [one.name for one in logs_of(cluster, down, "moved")] == ["moved-0"]
        cluster.start(down)
        wait_until(
            lambda: not logs_of(cluster, down, "moved"), within=WAIT_S, what="the replica that was moved away goes"
        )
