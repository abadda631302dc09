"""Our clients while brokers die, stand still and are restarted: no error, nothing lost, nothing doubled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pybroker.broker.failed_brokers import SUSPECTED_S
from pybroker.client import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, NewTopic, OffsetAndMetadata, TopicPartition
from pybroker.coordinator.runtime.partitioning import partition_of
from pybroker.testing import Cluster
from tests.support.conditions import wait_until
from tests.support.failover_load import FailoverLoad
from tests.support.wire import Wire, request

pytestmark = [pytest.mark.process]

WITHIN = 120.0
PARTITIONS = 3
OFFSETS = "__consumer_offsets"
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "broker.session.timeout.ms": "3000",
}
"""A session that is short: a broker that stands still is noticed by its end alone."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, properties=SETTINGS) as running:
        # Who asks for a coordinator has the topic of offsets made, which every test waits for.
        with Admin(running.bootstrap_servers) as admin:
            admin.describe_groups(["none"])
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, in sync everywhere."""
    name = request.node.name.replace("[", "-").strip("]")
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 3)])
        admin.wait_for_leaders(name)
    for partition in range(PARTITIONS):
        cluster.wait_in_sync(name, partition)
    return name


def coordinator(cluster: Cluster, group: str) -> int:
    """The broker that coordinates a group."""
    return cluster.leader(OFFSETS, partition_of(group, 3))


def in_sync(cluster: Cluster, topic: str) -> None:
    for partition in range(PARTITIONS):
        cluster.wait_in_sync(topic, partition)
        cluster.wait_in_sync(OFFSETS, partition)


def going(load: FailoverLoad, more: int = 600) -> None:
    """Wait until the load has come further by so many records."""
    wanted = load.acknowledged + more
    wait_until(lambda: load.is_going(wanted), within=WITHIN, what=lambda: f"{load.acknowledged} of {wanted} records")


@pytest.mark.parametrize("victim", ["leader", "coordinator", "controller"])
def test_the_death_of_a_broker_is_not_seen_by_clients(cluster: Cluster, topic: str, victim: str) -> None:
    with FailoverLoad(cluster.bootstrap_servers, topic, PARTITIONS) as load:
        going(load)
        before = [list(generations) for generations in load.generations]
        find = {"leader": lambda: cluster.leader(topic, 0), "coordinator": lambda: coordinator(cluster, topic)}
        killed = find.get(victim, cluster.controller)()
        cluster.kill(killed)
        going(load)
        cluster.start(killed)
        in_sync(cluster, topic)
        going(load)
        load.finish()
    assert load.read_again() == 0, "an offset that was committed is where the group goes on"
    assert [generations[-1] for generations in load.generations] == [generations[-1] for generations in before]


def leads(response: Any, partition: int) -> int:
    """The leader of a partition that a Metadata answer names."""
    [described] = (one for one in response.topics[0].partitions if one.partition_index == partition)
    leader: int = described.leader_id
    return leader


@pytest.mark.parametrize("victim", ["leader", "controller"])
def test_who_asks_after_a_death_is_sent_to_the_new_leader(cluster: Cluster, topic: str, victim: str) -> None:
    leader = cluster.leader(topic, 0) if victim == "leader" else cluster.controller()
    partition = next(at for at in range(PARTITIONS) if cluster.leader(topic, at) == leader)
    requested = request("Metadata", 9, topics=[{"name": topic}], allow_auto_topic_creation=False)
    with ExitStack() as stack:
        others = [stack.enter_context(Wire(cluster.address(one))) for one in cluster.brokers if one != leader]
        for other in others:
            other.query(requested)
        cluster.kill(leader)  # and its sockets are closed
        requested_s = time.monotonic()
        sent = [(other, other.send(requested)) for other in others]
        responses = [(other.receive(requested, number), time.monotonic() - requested_s) for other, number in sent]
        until_s = requested_s + WITHIN
        for at, (other, _) in enumerate(sent):
            # On a busy machine a broker may answer before it has seen that the sockets are closed.
            while leads(responses[at][0], partition) == leader and responses[at][1] < SUSPECTED_S:
                again_s = time.monotonic()
                assert again_s < until_s, "the dead broker is named again and again"
                responses[at] = (other.query(requested), time.monotonic() - again_s)
    cluster.start(leader)
    in_sync(cluster, topic)
    for response, waited_s in responses:
        # On a machine that is busy with other things the election may take longer than an answer waits.
        assert leads(response, partition) in set(cluster.brokers) - {leader} or waited_s >= SUSPECTED_S
        assert {one.node_id for one in response.brokers} == set(cluster.brokers), (
            "nobody forgets it before its partitions"
        )


@pytest.mark.parametrize("victim", ["leader", "coordinator"])
def test_a_broker_that_stands_still_is_left_when_another_leads(cluster: Cluster, topic: str, victim: str) -> None:
    with FailoverLoad(cluster.bootstrap_servers, topic, PARTITIONS) as load:
        going(load)
        paused = cluster.leader(topic, 0) if victim == "leader" else coordinator(cluster, topic)
        with cluster.paused(paused):
            going(load)
        in_sync(cluster, topic)
        going(load)
        load.finish()
    assert load.metrics["acknowledgement-gap-max"] < 25_000, "request.timeout.ms is 30 s, the broker's session 3 s"


def test_a_rolling_restart_is_not_seen_by_clients(cluster: Cluster, topic: str) -> None:
    with FailoverLoad(cluster.bootstrap_servers, topic, PARTITIONS) as load:
        going(load)
        before = [generations[-1] for generations in load.generations]
        for broker in cluster.brokers:
            cluster.restart(broker)
            in_sync(cluster, topic)
        going(load)
        load.finish()
    assert load.read_again() == 0
    assert [generations[-1] for generations in load.generations] == before


def test_an_answered_commit_is_at_the_next_coordinator(cluster: Cluster, topic: str) -> None:
    group, partition = f"group-of-{topic}", TopicPartition(topic, 0)
    offsets = (OFFSETS, partition_of(group, 3))

    async def commit_and_kill() -> list[int]:
        committed = []
        async with AsyncConsumer(cluster.bootstrap_servers, {"group.id": group}) as consumer:
            for offset in range(1, 4):
                await consumer.commit({partition: OffsetAndMetadata(offset)})
                killed = await asyncio.to_thread(cluster.leader, *offsets)
                await asyncio.to_thread(cluster.kill, killed)
                found = (await consumer.committed(partition))[partition]
                committed.append(-1 if found is None else found.offset)
                await asyncio.to_thread(cluster.start, killed)
                await asyncio.to_thread(cluster.wait_in_sync, *offsets)
        return committed

    assert asyncio.run(commit_and_kill()) == [1, 2, 3]


def test_asyncio_clients_and_an_admin_go_on_without_the_controller(cluster: Cluster, topic: str) -> None:
    async def go_on() -> list[bytes | None]:
        async with (
            AsyncAdmin(cluster.bootstrap_servers) as admin,
            AsyncProducer(cluster.bootstrap_servers) as producer,
            AsyncConsumer(cluster.bootstrap_servers, {"auto.offset.reset": "earliest"}) as consumer,
        ):
            await (await producer.send(topic, b"before", partition=0))
            consumer.assign([TopicPartition(topic, 0)])
            killed = await asyncio.to_thread(cluster.controller)
            await asyncio.to_thread(cluster.kill, killed)
            await admin.create_topics([NewTopic(f"{topic}-2", 1, 2)])
            await (await producer.send(topic, b"after", partition=0))
            values: list[bytes | None] = []
            while len(values) < 2:
                values += [record.value for record in await consumer.poll(1.0)]
            await asyncio.to_thread(cluster.start, killed)
            return values

    assert asyncio.run(go_on()) == [b"before", b"after"]
    in_sync(cluster, topic)
