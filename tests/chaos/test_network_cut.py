"""A node that a network cut has isolated is in the quorum and in the ISR again after the cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client import Producer
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import NewTopic
from pybroker.client.errors import BrokerError, ClientError
from pybroker.local_cluster.cluster import LocalCluster
from pybroker.local_cluster.layout import NodePorts
from tests.chaos.network import CLIENTS, Network
from tests.chaos.rights import network_fault
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

TOPIC = "orders"
NODES = (1, 2, 3)
HEALED_S = 90.0


@pytest.fixture
def network() -> Iterator[Network]:
    if network_fault():
        pytest.skip(network_fault())
    made = Network(len(NODES))
    made.begin()
    yield made
    made.end()


@pytest.fixture
def cluster(network: Network, tmp_path: Path) -> Iterator[LocalCluster]:
    """Three nodes that are brokers and voters, each in a namespace of its own."""
    ports = [NodePorts(9092, 9093, host=network.address(node)) for node in NODES]
    wrappers = {node: network.wrapper(node) for node in NODES}
    made = LocalCluster(tmp_path, ports, {"num.network.threads": "1"}, wrappers)
    try:
        made.start()
        yield made
    finally:
        made.kill_all()


def in_sync(admin: Admin) -> set[int]:
    """The ISR of the topic's partition; empty where no broker responds in time."""
    try:
        (topic,) = admin.describe_topics([TOPIC])
    except (BrokerError, ClientError):
        return set()
    return set(topic.partitions[0].isr)


def has_all_metadata(admin: Admin, node: int) -> bool:
    """Whether a voter's log ends where that of the leader does."""
    try:
        quorum = admin.describe_quorum()
    except (BrokerError, ClientError):
        return False
    ends = {voter.node_id: voter.end_offset for voter in quorum.voters}
    return ends[node] == ends.get(quorum.leader_id)


def responses_missed(cluster: LocalCluster, node: int, voter: int) -> list[str]:
    """The lines in a node's log about responses of a voter that were missing, and that arrived again."""
    text = cluster.node(node).log.read_text(encoding="utf-8", errors="replace")
    return re.findall(rf"voter {voter}\b.*(no response within|responds again)", text)


def test_an_isolated_follower_is_in_the_quorum_and_in_the_isr_again_after_the_cut(
    network: Network, cluster: LocalCluster
) -> None:
    settings = {"default.api.timeout.ms": 5000, "request.timeout.ms": 2000}
    with Admin(cluster.bootstrap_servers, settings) as admin:
        leader = admin.describe_quorum().leader_id
        isolated, other = (node for node in NODES if node != leader)
        # The active controller leads the partition, as it stays in reach.
        admin.create_topics(
            [NewTopic(TOPIC, configs={"min.insync.replicas": "3"}, assignments={0: [leader, isolated, other]})]
        )
        with Producer(cluster.bootstrap_servers, {"acks": "all", "delivery.timeout.ms": 120_000}) as producer:
            producer.send(TOPIC, b"before").result(60)
            network.isolate(isolated, [CLIENTS, leader, other])
            remaining = {leader, other}
            wait_until(lambda: in_sync(admin) == remaining, within=60, what=f"the ISR is {remaining}")
            during = producer.send(TOPIC, b"during")
            admin.create_topics([NewTopic("added-during-the-cut", 1, 2)])
            assert not during.done()
            network.mend()
            wait_until(lambda: has_all_metadata(admin, isolated), within=HEALED_S, what="the voter has all metadata")
            during.result(HEALED_S)
            wait_until(lambda: in_sync(admin) == set(NODES), within=HEALED_S, what="all replicas are in sync")
            producer.send(TOPIC, b"after").result(60)
    for node, voter in ((leader, isolated), (isolated, leader)):
        assert responses_missed(cluster, node, voter) == ["no response within", "responds again"]
