"""An unclean leader election in a cluster of processes: the active controller logs it, and only this node."""

from __future__ import annotations

import re

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Cluster
from tests.support.conditions import wait_until

pytestmark = pytest.mark.process

TOPIC = "orders"
LINE = re.compile(r"WARN .*Unclean leader election of orders-0 in leader epoch \d+: (.*)")


def test_the_active_controller_logs_an_unclean_election_with_both_leaders() -> None:
    with Cluster(brokers=3, broker_session_timeout_ms=3_000) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 1, 2, configs={"unclean.leader.election.enable": "true"})])
            admin.wait_for_leaders(TOPIC)
        leader = cluster.leader(TOPIC)
        [follower] = set(cluster.in_sync(TOPIC)) - {leader}
        cluster.kill(follower)
        cluster.wait_in_sync(TOPIC, brokers=[leader])
        cluster.kill(leader)
        cluster.start(follower)
        cluster.wait_for_partition(TOPIC, 0, lambda found: found.leader == follower)
        found = wait_until(
            lambda: [(node, line) for node in cluster.running for line in LINE.findall(cluster.log(node))],
            within=60,
            what="the election is logged",
        )
        [(node, line)] = found
        assert node == cluster.controller()
        assert line == (
            f"broker {follower} is the leader in place of broker {leader}. Broker {follower} was not in sync "
            f"(ISR [{leader}]): the partition loses the records that broker {follower} lacks"
        )
