"""Unclean leader elections are logged and counted on the active controller; clean ones are not."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pytest

from pybroker.controller.cluster.events import ElectionType, NewTopic
from pybroker.controller.unclean_elections import UncleanElections
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage, TopicsImage
from pybroker.metadata.index_delta import build_index
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
from tests.support.controllers import Running, running

T = b"t" * 16
RECOVERING = 1
LEADS_1 = PartitionImage(leader=1, leader_epoch=5, partition_epoch=0, replicas=(1, 2, 3), isr=(1,))
WITHOUT_LEADER = msgspec.structs.replace(LEADS_1, leader=NO_LEADER, leader_epoch=6)


def publish(elections: UncleanElections, before: PartitionImage, *changes: PartitionChangeRecord) -> None:
    """Publish the image that follows from changes of orders-0."""
    topic = TopicImage(name="orders", topic_id=T, partitions={0: before})
    topics = TopicsImage(by_name={"orders": topic}, by_id={T: topic}, index=build_index([topic]))
    delta = MetadataDelta(MetadataImage(topics=topics))
    for change in changes:
        delta.apply(change)
    elections.publish(delta, delta.build())


def change(leader: int, isr: list[int] | None = None, recovery: int = -1) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=T, leader=leader, isr=isr, leader_recovery_state=recovery)


UNCLEAN = change(2, [2], RECOVERING)


@pytest.mark.parametrize(
    ("before", "changes", "epoch", "isr"),
    [
        pytest.param(WITHOUT_LEADER, [UNCLEAN], 7, "[1]", id="of a partition without a leader"),
        pytest.param(LEADS_1, [UNCLEAN], 6, "[1]", id="when the leader is fenced"),
        pytest.param(LEADS_1, [change(NO_LEADER), UNCLEAN], 7, "[1]", id="after a change in the same image"),
        pytest.param(
            msgspec.structs.replace(WITHOUT_LEADER, leader_recovery_state=RECOVERING),
            [change(2, [2])],
            7,
            "[1]",
            id="while the partition recovers from another one",
        ),
        pytest.param(
            msgspec.structs.replace(WITHOUT_LEADER, isr=(), last_known_elr=(1,)),
            [UNCLEAN],
            7,
            "[]",
            id="with an empty ISR",
        ),
    ],
)
def test_an_unclean_election_is_counted_and_logged_with_both_leaders(
    before: PartitionImage,
    changes: list[PartitionChangeRecord],
    epoch: int,
    isr: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    elections = UncleanElections(lambda: True)
    publish(elections, before, *changes)
    assert elections.count == 1
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"Unclean leader election of orders-0 in leader epoch {epoch}: broker 2 is the leader in place of broker 1. "
        f"Broker 2 was not in sync (ISR {isr}): the partition loses the records that broker 2 lacks"
    )


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        pytest.param(msgspec.structs.replace(LEADS_1, isr=(1, 2)), [change(2, [2])], id="of a replica in the ISR"),
        pytest.param(
            msgspec.structs.replace(WITHOUT_LEADER, isr=(), eligible_leader_replicas=(2,)),
            [change(2, [2])],
            id="of an eligible leader replica",
        ),
        pytest.param(
            msgspec.structs.replace(WITHOUT_LEADER, leader_recovery_state=RECOVERING),
            [change(1)],
            id="of a leader that recovers and returns",
        ),
        pytest.param(LEADS_1, [change(1)], id="of the same leader"),
        pytest.param(LEADS_1, [change(NO_LEADER)], id="of no leader"),
    ],
)
def test_a_clean_election_is_not_counted(
    before: PartitionImage, changes: list[PartitionChangeRecord], caplog: pytest.LogCaptureFixture
) -> None:
    elections = UncleanElections(lambda: True)
    publish(elections, before, *changes)
    assert (elections.count, caplog.records) == (0, [])


def test_a_controller_that_is_not_active_counts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    elections = UncleanElections(lambda: False)
    publish(elections, LEADS_1, UNCLEAN)
    assert (elections.count, caplog.records) == (0, [])


async def test_a_requested_unclean_election_is_counted_by_the_active_controller(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    active: list[Running] = []
    elections = UncleanElections(lambda: bool(active) and active[0].controller.is_leader)
    async with running(tmp_path, [elections]) as one:
        active.append(one)
        epochs = {broker: await one.register(broker) for broker in (1, 2)}
        [created] = await one.channel.create_topics([NewTopic(name="t", num_partitions=1, replication_factor=2)])
        partition = one.image.topics.by_id[created.topic_id].partitions[0]
        first, last = partition.leader, 3 - partition.leader
        for broker in (first, last):
            await one.channel.heartbeat(broker, epochs[broker], want_fence=True)
        await one.channel.heartbeat(first, epochs[first])
        assert one.image.topics.by_id[created.topic_id].partitions[0].leader == NO_LEADER
        assert elections.count == 0
        await one.channel.elect_leaders(ElectionType.UNCLEAN, None)
        assert one.image.topics.by_id[created.topic_id].partitions[0].leader == first
    assert elections.count == 1
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"t-0 in leader epoch 3: broker {first} is the leader in place of broker {last}" in warning
