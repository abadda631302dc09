"""A voter among three whose metadata log lost its end while it was down: the records come back, and nothing is lost.

A producer sends to all nodes with acks=all meanwhile.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Cluster
from tests.support.conditions import wait_until
from tests.support.log_damage import DAMAGES, METADATA_LOG
from tests.support.numbered_load import PARTITIONS, Load, read_all
from tests.support.wire import Wire

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

LOST = "lost records: it ends at offset"


class World:
    """A cluster under load, and the topics that were created in it."""

    def __init__(self, cluster: Cluster, root: Path) -> None:
        self.cluster, self.root = cluster, root
        self.topics: list[str] = []

    def create(self, name: str, replicas: int = 3) -> None:
        """A topic, when the quorum has a leader again."""
        with Admin(self.cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, 2, replicas)])
            admin.wait_for_leaders(name)
        self.topics.append(name)

    def data(self, node: int) -> Path:
        return self.root / f"broker-{node}" / "data"

    def copy_log(self, node: int) -> Path:
        """The metadata log as it is now."""
        older = self.root / f"older-{len(self.topics)}"
        shutil.copytree(self.data(node) / METADATA_LOG, older)
        return older

    def wait_in_sync(self) -> None:
        """Every node has the whole metadata log, and every replica all records."""
        wait_until(lambda: len(set(self.ends().values())) == 1, within=60, what="all voters have the whole log")
        for partition in range(PARTITIONS):
            self.cluster.wait_in_sync("load", partition, timeout=60)

    def ends(self) -> dict[int, int]:
        """Where the log of each voter ends, as the leader knows it."""
        requested = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
        with Wire(self.cluster.address(self.cluster.controller(timeout=60))) as wire:
            partition = wire.call("DescribeQuorum", 1, topics=requested).topics[0].partitions[0]
        return {voter.replica_id: voter.log_end_offset for voter in partition.current_voters}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = {"min.insync.replicas": "2", "default.replication.factor": "3"}
    with Cluster(3, directory=tmp_path, properties=settings) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("load", PARTITIONS, 3)])
            admin.wait_for_leaders("load")
        load = Load(cluster.bootstrap_servers, "load", idempotent=True, pause_s=0.002)
        world = World(cluster, tmp_path)
        try:
            yield world
        finally:
            load.finish()
        world.wait_in_sync()
        assert load.failures == []
        read = read_all(cluster.bootstrap_servers, "load")
        found = {(partition, offset): number for partition, offset, number in read}
        assert {place: found.get(place) for place in load.acknowledged} == load.acknowledged
        assert sorted(found.values()) == list(range(load.sent))
        with Admin(cluster.bootstrap_servers) as admin:
            assert set(world.topics) <= set(admin.list_topics())


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_follower_gets_its_records_back_from_its_leader(world: World, damage: str) -> None:
    cluster = world.cluster
    leader = cluster.controller()
    lost = next(node for node in cluster.running if node != leader)
    older = world.copy_log(lost)
    world.create("before")
    world.wait_in_sync()
    cluster.kill(lost)
    DAMAGES[damage](world.data(lost), older)
    world.create("meanwhile")
    cluster.start(lost)
    world.wait_in_sync()
    world.create("after")
    assert LOST in cluster.log(lost)
    assert "the metadata log has fetched the lost records again" in cluster.log(lost)
    assert f"voter {lost} lost records of the metadata log" in cluster.log(leader)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_leader_of_the_quorum_gets_its_records_back_from_its_successor(world: World, damage: str) -> None:
    cluster = world.cluster
    leader = cluster.controller()
    older = world.copy_log(leader)
    world.create("before")
    world.wait_in_sync()
    cluster.kill(leader)
    DAMAGES[damage](world.data(leader), older)
    cluster.start(leader)
    world.wait_in_sync()
    world.create("after")
    assert LOST in cluster.log(leader)
    assert "the metadata log has fetched the lost records again" in cluster.log(leader)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_voter_that_lost_records_elects_another_one_that_has_them(world: World, damage: str) -> None:
    """The leader is down: without the vote of the voter that lost records there is none."""
    cluster = world.cluster
    leader = cluster.controller()
    lost = next(node for node in cluster.running if node != leader)
    older = world.copy_log(lost)
    world.create("before")
    world.wait_in_sync()
    cluster.kill(lost)
    DAMAGES[damage](world.data(lost), older)
    cluster.kill(leader)
    cluster.start(lost)
    assert cluster.controller(timeout=60) not in (lost, leader)
    world.create("without-the-leader", replicas=2)
    assert LOST in cluster.log(lost)
    cluster.start(leader)
    world.wait_in_sync()
    # The voter may lead, now that it has the records.
    cluster.stop(cluster.controller())
    world.create("after", replicas=2)
    cluster.start(next(node for node in cluster.brokers if node not in cluster.running))
