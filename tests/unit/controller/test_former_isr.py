"""After a crash of all replicas a broker that reports a loss does not lead where another replica was in sync."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pybroker.controller.cluster.events import NewTopic
from pybroker.controller.local_channel import LocalChannel
from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.metadata.image import NO_LEADER, PartitionImage
from pybroker.metadata.in_sync import NO_BROKER_EPOCH, InSyncChange
from pybroker.metadata.replica_directories import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from pybroker.protocol.messages.create_topics import CreatableReplicaAssignment
from tests.support.controllers import Running, running

BROKERS = (1, 2, 3)


class Nodes:
    """Three brokers with a replica each of a partition."""

    def __init__(self, running: Running) -> None:
        self.controller = running.controller
        self.channel = LocalChannel(running.controller, is_removed=lambda _: True)
        # This one follows the metadata.
        self.channel.former_isr = running.channel.former_isr
        self.epochs: dict[int, int] = {}
        self.starts = 0
        self.topic_id = b""

    @property
    def partition(self) -> PartitionImage:
        return self.controller.image.topics.by_id[self.topic_id].partitions[0]

    async def start(self, broker: int) -> None:
        """Register a new incarnation after an unclean stop."""
        self.starts += 1
        registered = await self.channel.register_broker(
            broker,
            incarnation_id=self.starts.to_bytes(16),
            listeners={"P": ("h", broker)},
            security_protocols={"P": 0},
            features=SUPPORTED_FEATURES,
        )
        assert registered.error_code == 0
        self.epochs[broker] = registered.broker_epoch

    async def heartbeat(self, *brokers: int) -> None:
        for broker in brokers:
            await self.channel.heartbeat(broker, self.epochs[broker])

    async def report(self, broker: int, directory: bytes) -> None:
        await self.channel.assign_replicas(broker, self.epochs[broker], {(self.topic_id, 0): directory})

    async def shrink(self, leader: int, *isr: int) -> None:
        now = self.partition
        members = tuple((one, NO_BROKER_EPOCH) for one in isr)
        change = InSyncChange(self.topic_id, 0, now.leader_epoch, now.partition_epoch, members)
        [result] = await self.channel.alter_partitions(leader, self.epochs[leader], [change])
        assert result.isr == isr


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with running(tmp_path) as one:
        nodes = Nodes(one)
        for broker in BROKERS:
            await nodes.start(broker)
            await nodes.heartbeat(broker)
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(BROKERS))
        topic = NewTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment])
        [created] = await nodes.channel.create_topics([topic])
        nodes.topic_id = created.topic_id
        assert (nodes.partition.leader, nodes.partition.isr) == (1, BROKERS)
        yield nodes


async def test_the_last_replica_to_leave_the_isr_leads_where_the_last_one_in_it_is_lost(nodes: Nodes) -> None:
    for broker in (2, 3, 1):
        await nodes.start(broker)
    await nodes.heartbeat(2, 3)
    assert (nodes.partition.leader, nodes.partition.isr) == (NO_LEADER, (1,))
    await nodes.report(1, LOST_DIRECTORY)
    assert (nodes.partition.leader, nodes.partition.isr) == (3, (3,))
    await nodes.report(1, UNASSIGNED_DIRECTORY)
    await nodes.heartbeat(1)
    assert (nodes.partition.leader, nodes.partition.isr) == (3, (3,))


async def test_a_lost_replica_is_not_restored(nodes: Nodes) -> None:
    for broker in (2, 3):
        await nodes.start(broker)
    await nodes.report(3, LOST_DIRECTORY)
    await nodes.start(1)
    await nodes.report(1, LOST_DIRECTORY)
    assert (nodes.partition.leader, nodes.partition.isr) == (NO_LEADER, (2,))


async def test_the_last_replica_leads_where_all_are_lost(nodes: Nodes) -> None:
    for broker in (2, 3, 1):
        await nodes.start(broker)
        await nodes.report(broker, LOST_DIRECTORY)
    assert (nodes.partition.leader, nodes.partition.isr) == (NO_LEADER, (1,))
    await nodes.report(1, UNASSIGNED_DIRECTORY)
    await nodes.heartbeat(1)
    assert (nodes.partition.leader, nodes.partition.isr) == (1, (1,))


@pytest.mark.parametrize("proof", ["heartbeat", "ISR"])
async def test_a_leader_that_was_alive_may_have_records_that_no_former_replica_has(nodes: Nodes, proof: str) -> None:
    await nodes.start(2)
    if proof == "heartbeat":
        await nodes.start(3)
        await nodes.heartbeat(1)
    else:
        await nodes.shrink(1, 1)
    await nodes.start(1)
    await nodes.report(1, LOST_DIRECTORY)
    assert nodes.partition.isr == (1,)


async def test_a_replica_that_leads_when_it_returns_is_alive(nodes: Nodes) -> None:
    for broker in (2, 3, 1):
        await nodes.start(broker)
    await nodes.heartbeat(1)
    assert nodes.partition.leader == 1
    await nodes.start(1)
    await nodes.report(1, LOST_DIRECTORY)
    assert nodes.partition.isr == (1,)


async def test_a_controller_that_becomes_active_remembers_nothing(nodes: Nodes) -> None:
    for broker in (2, 3, 1):
        await nodes.start(broker)
    nodes.channel.former_isr.forget()
    await nodes.report(1, LOST_DIRECTORY)
    assert nodes.partition.isr == (1,)


async def test_replicas_of_deleted_topics_are_forgotten(nodes: Nodes) -> None:
    await nodes.start(2)
    key = (nodes.topic_id, 0)
    assert nodes.channel.former_isr.of([key]) == {key: (2,)}
    await nodes.heartbeat(3)
    assert nodes.channel.former_isr.of([key]) == {key: (2,)}
    await nodes.channel.delete_topics(["t"])
    await nodes.heartbeat(3)
    assert nodes.channel.former_isr.of([key]) == {}
