from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from pybroker.metadata.in_sync import InSyncChange, InSyncResult
from pybroker.protocol.errors import ErrorCode
from pybroker.replica import in_sync
from pybroker.replica.in_sync import InSyncReplicas
from tests.support.quorums import until

TOPIC = b"t" * 16


def image_of(
    isr: tuple[int, ...], *, leader_epoch: int = 5, partition_epoch: int = 0, recovery: int = 0
) -> MetadataImage:
    partition = PartitionImage(
        leader=1,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        replicas=(1, 2, 3),
        isr=isr,
        leader_recovery_state=recovery,
    )
    topic = TopicImage("t", TOPIC, {0: partition})
    brokers = {id_: BrokerRegistration(id_, bytes(16), 100 + id_, {}, {}, fenced=False) for id_ in (1, 2, 3)}
    return MetadataImage(cluster=ClusterImage(brokers), topics=TopicsImage({"t": topic}, {TOPIC: topic}))


class Leader:
    """Broker 1 with a controller that answers when it is let."""

    def __init__(self, image: MetadataImage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.image = image
        self.requested: list[InSyncChange] = []
        self.responses: asyncio.Queue[InSyncResult] = asyncio.Queue()
        self.stopped: list[int] = []
        monkeypatch.setattr(in_sync, "stop_joining", lambda _p, _d, replicas: self.stopped.extend(replicas))
        plane: Any = None
        partition: Any = object()
        self.requests = InSyncReplicas(
            1,
            plane,
            image=lambda: self.image,
            find=lambda _topic, _index: partition,
            alter_partitions=self.alter,
            broker_epoch=lambda: 101,
        )

    async def alter(self, changes: Sequence[InSyncChange]) -> list[InSyncResult]:
        self.requested += changes
        return [await self.responses.get()]

    def caught_up(self, replica: int, *, leader_epoch: int = 5, partition_epoch: int = 0) -> None:
        event: Any = SimpleNamespace(
            topic_id=TOPIC,
            index=0,
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
            replica=replica,
            broker_epoch=100 + replica,
        )
        self.requests.caught_up(event)

    def publish(self, image: MetadataImage) -> None:
        self.image = image
        self.requests.published(image)

    def let_in(self, *isr: int, partition_epoch: int) -> None:
        self.responses.put_nowait(
            InSyncResult(TOPIC, 0, ErrorCode.NONE, 1, 5, isr, partition_epoch=partition_epoch),
        )


def ids(change: InSyncChange) -> set[int]:
    return {id_ for id_, _ in change.isr}


async def test_who_caught_up_before_the_image_is_asked_for_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leader = Leader(image_of((1,), leader_epoch=4), monkeypatch)
    leader.caught_up(2)
    await asyncio.gather(asyncio.Queue[None]().join())  # a turn of the loop
    assert leader.requested == []
    leader.publish(image_of((1,)))
    await until(lambda: len(leader.requested) == 1)
    assert ids(leader.requested[0]) == {1, 2}
    await leader.requests.stop()


async def test_a_leader_that_was_elected_uncleanly_has_recovered_when_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = Leader(image_of((1,), recovery=1), monkeypatch)
    leader.caught_up(2)
    await until(lambda: len(leader.requested) == 1)
    assert leader.requested[0].leader_recovery_state == 0
    await leader.requests.stop()


async def test_who_caught_up_at_an_older_partition_epoch_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = Leader(image_of((1,)), monkeypatch)
    leader.caught_up(2)
    await until(lambda: len(leader.requested) == 1)
    leader.caught_up(3)
    leader.publish(image_of((1, 2), partition_epoch=1))
    # At partition epoch 1 the high watermark does not wait for broker 3: it may lack what is committed by now.
    leader.let_in(1, 2, partition_epoch=1)
    leader.caught_up(3, partition_epoch=1)
    await until(lambda: len(leader.requested) == 2)
    assert (ids(leader.requested[1]), leader.requested[1].partition_epoch) == ({1, 2, 3}, 1)
    leader.publish(image_of((1, 2), partition_epoch=2))
    leader.let_in(1, 2, partition_epoch=2)
    await until(lambda: leader.requests._querying is None)
    assert len(leader.requested) == 2
    await leader.requests.stop()


async def test_who_caught_up_while_another_is_asked_for_is_asked_for_next(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = Leader(image_of((1,)), monkeypatch)
    leader.caught_up(2)
    await until(lambda: len(leader.requested) == 1)
    # The image overtakes the answer, and the data plane reports broker 3 as of it.
    leader.publish(image_of((1, 2), partition_epoch=1))
    leader.caught_up(3, partition_epoch=1)
    leader.let_in(1, 2, partition_epoch=1)
    await until(lambda: len(leader.requested) == 2)
    assert ids(leader.requested[1]) == {1, 2, 3}
    await leader.requests.stop()
