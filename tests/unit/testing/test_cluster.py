"""A test's cluster: brokers in processes, killed, paused and moved about."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka.admin
import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import NewTopic
from pybroker.client.errors import AuthenticationError
from pybroker.config.errors import ConfigError, UnknownKeyError
from pybroker.testing import Cluster
from tests.support.conditions import wait_until

_PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers with a topic on all of them."""
    with Cluster(brokers=3) as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 3)])
        yield running


def test_brokers_are_processes_of_one_cluster_that_is_removed_with_it() -> None:
    with Cluster(brokers=2) as running:
        pids = [running.pid(broker) for broker in running.brokers]
        with Admin(running.bootstrap_servers) as admin:
            described = admin.describe_cluster()
        assert described.cluster_id == running.cluster_id
        assert [broker.node_id for broker in described.brokers] == [1, 2]
        assert os.getpid() not in pids
    assert running.running == ()
    assert not running.directory.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_killed_leader_is_followed_by_another_and_comes_back_in_sync(cluster: Cluster) -> None:
    first = cluster.leader("orders", 0)
    cluster.kill(first)
    assert cluster.wait_for_partition("orders", 0, lambda it: it.leader not in (-1, first)).leader != first
    assert first not in cluster.running
    cluster.start(first)
    cluster.wait_in_sync("orders", 0)
    assert set(cluster.in_sync("orders", 0)) == {1, 2, 3}


def test_leadership_is_moved_to_a_replica_and_to_no_other_broker(cluster: Cluster) -> None:
    cluster.wait_in_sync("orders", 1)
    wanted = next(broker for broker in cluster.brokers if broker != cluster.leader("orders", 1))
    cluster.move_leader("orders", 1, wanted)
    assert cluster.leader("orders", 1) == wanted
    with pytest.raises(ValueError, match="broker 7 is no replica of orders-1"):
        cluster.move_leader("orders", 1, 7)


def test_a_paused_broker_stays_and_goes_on_when_it_is_resumed(cluster: Cluster) -> None:
    paused = next(broker for broker in cluster.brokers if broker != cluster.controller())
    with cluster.paused(paused):
        stat = Path(f"/proc/{cluster.pid(paused)}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", within=60, what="the process stops")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] != "T", within=60, what="the process goes on")
    assert paused in cluster.running


def test_a_stopped_broker_hands_over_and_keeps_its_address(cluster: Cluster) -> None:
    leader = cluster.leader("orders", 0)
    address, log = cluster.address(leader), cluster.log(leader)
    cluster.stop(leader)
    assert cluster.leader("orders", 0) != leader
    cluster.start(leader)
    assert cluster.address(leader) == address
    assert "the controller allows this broker to stop" in cluster.log(leader).removeprefix(log)
    cluster.wait_in_sync("orders", 0)


def test_the_active_controller_is_a_running_node_and_another_follows_it(cluster: Cluster) -> None:
    first = cluster.controller()
    cluster.kill(first)
    assert cluster.controller() != first
    cluster.start(first)


def test_what_there_is_not_is_named(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="broker 9 does not exist; the cluster has 1, 2, 3"):
        cluster.kill(9)
    with pytest.raises(ValueError, match="topic orders has no partition 5: it has 2"):
        cluster.leader("orders", 5, timeout=0)


async def test_an_event_loop_goes_on_while_a_cluster_starts() -> None:
    async with Cluster(brokers=1) as running:
        assert running.running == (1,)
    assert running.running == ()


def test_wrong_settings_are_refused_and_leave_nothing() -> None:
    with pytest.raises(UnknownKeyError, match=r"num\.partition"):
        Cluster(num_partition=3)
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Cluster(num_partitions=0)
    with pytest.raises(ValueError, match="brokers=0"):
        Cluster(brokers=0)
    with pytest.raises(ValueError, match="expected a rack, or None, for each of 3 brokers"):
        Cluster(brokers=3, racks=["a", "b"])


def test_a_broker_that_ended_by_itself_is_started_again(cluster: Cluster) -> None:
    broker = next(broker for broker in cluster.brokers if broker != cluster.controller())
    os.kill(cluster.pid(broker), signal.SIGKILL)
    wait_until(lambda: broker not in cluster.running, within=60, what="the process is gone")
    cluster.start(broker)
    assert broker in cluster.running


def test_a_secured_cluster_has_users_and_tells_clients_what_they_need() -> None:
    with Cluster(brokers=2, security="SASL_SSL", users={"eve": "eve-secret", "adam": "it's \\ his"}) as running:
        assert running.controller() in running.brokers
        for user, mechanism in (("eve", "PLAIN"), ("adam", "SCRAM-SHA-256"), (None, "SCRAM-SHA-512")):
            settings = running.client_properties(user, mechanism=mechanism)
            with Admin(running.bootstrap_servers, settings) as admin:
                assert len(admin.describe_cluster().brokers) == 2
        theirs = confluent_kafka.admin.AdminClient(running.client_settings("adam"))
        assert len(theirs.list_topics(timeout=60).brokers) == 2
        del theirs  # the error below refers to this frame: until both are collected the client would log its attempts
        modes = {
            running.directory.joinpath(f"broker-{broker}", "server.properties").stat().st_mode & 0o777
            for broker in (1, 2)
        }
        assert modes == {0o600}
        other = {
            **running.client_properties("eve", mechanism="PLAIN"),
            "sasl.jaas.config": _PLAIN.format("eve", "wrong"),
        }
        with pytest.raises(AuthenticationError), Admin(running.bootstrap_servers, other) as admin:
            admin.describe_cluster()


def test_users_need_a_protocol_that_asks_for_them() -> None:
    with pytest.raises(ValueError, match="users need security SASL_PLAINTEXT or SASL_SSL"):
        Cluster(users={"eve": "secret"})
    with pytest.raises(ValueError, match="security='TLS': expected one of SSL, SASL_PLAINTEXT, SASL_SSL"):
        Cluster(security="TLS")
