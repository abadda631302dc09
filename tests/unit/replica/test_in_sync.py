from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.metadata.image import (
    EMPTY_IMAGE,
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from pybroker.metadata.in_sync import InSyncChange, InSyncResult
from pybroker.protocol.errors import ErrorCode
from pybroker.replica.in_sync import InSyncReplicas
from pybroker.replica.native import DataPlane, Partition
from tests.support.partitions import start_data_plane
from tests.support.quorums import until

TOPIC_ID = b"t" * 16


async def turns() -> None:
    """Let the loop take some turns."""
    for _ in range(10):
        turn = asyncio.get_running_loop().create_future()
        turn.get_loop().call_soon(turn.set_result, None)
        await turn


@dataclass(frozen=True)
class CaughtUp:
    """What the data plane's event says."""

    topic_id: bytes
    index: int
    leader_epoch: int
    replica: int
    broker_epoch: int


def image(
    isr: tuple[int, ...] = (1,), *, epoch: int = 5, partition_epoch: int = 7, fenced: tuple[int, ...] = ()
) -> MetadataImage:
    partition = PartitionImage(1, epoch, partition_epoch, (1, 2, 3), isr)
    topic = TopicImage("orders", TOPIC_ID, {0: partition})
    brokers = {id_: BrokerRegistration(id_, b"", 100 + id_, {}, {}, fenced=id_ in fenced) for id_ in (1, 2, 3)}
    topics = TopicsImage({"orders": topic}, {TOPIC_ID: topic})
    return msgspec.structs.replace(EMPTY_IMAGE, cluster=ClusterImage(brokers), topics=topics)


class Controller:
    """Answers as it is set to, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[InSyncChange] = []
        self.error = ErrorCode.NONE
        self.raises: list[Exception] = []

    async def alter_partitions(self, changes: Sequence[InSyncChange]) -> list[InSyncResult]:
        self.asked.extend(changes)
        if self.raises:
            raise self.raises.pop()
        return [InSyncResult(change.topic_id, change.partition, self.error) for change in changes]


class Leader:
    """What asks, and the image that is in force."""

    def __init__(self, data_plane: DataPlane) -> None:
        self.image = image()
        self.controller = Controller()
        self.sought: list[str] = []
        self.in_sync = InSyncReplicas(
            1,
            data_plane,
            image=lambda: self.image,
            find=self._find,
            alter_partitions=self.controller.alter_partitions,
            broker_epoch=lambda: 101,
        )

    def _find(self, topic: str, _index: int) -> Partition | None:
        self.sought.append(topic)
        return None

    def caught_up(self, replica: int, *, leader_epoch: int = 5) -> None:
        self.in_sync.caught_up(CaughtUp(TOPIC_ID, 0, leader_epoch, replica, 100 + replica))  # type: ignore[arg-type]

    def show(self, newer: MetadataImage) -> None:
        self.image = newer
        self.in_sync.published(newer)


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Leader]:
    config = BrokerConfig({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"})
    data_plane = start_data_plane(config)
    yield Leader(data_plane)
    data_plane.shut_down(grace_ms=0)


async def test_who_caught_up_is_asked_for_with_the_epochs_that_are_known(leader: Leader) -> None:
    leader.caught_up(2)
    await until(lambda: len(leader.controller.asked) == 1)
    (change,) = leader.controller.asked
    assert change == InSyncChange(TOPIC_ID, 0, 5, 7, ((1, 101), (2, 102)))


async def test_one_question_is_under_way_and_the_next_waits_for_the_image(leader: Leader) -> None:
    leader.caught_up(2)
    await until(lambda: len(leader.controller.asked) == 1)
    leader.caught_up(3)
    await turns()
    assert len(leader.controller.asked) == 1
    leader.show(image((1, 2), partition_epoch=8))
    await until(lambda: len(leader.controller.asked) == 2)
    assert leader.controller.asked[1].isr == ((1, 101), (2, 102), (3, 103))
    assert leader.controller.asked[1].partition_epoch == 8


async def test_a_controller_that_does_not_answer_is_asked_again(leader: Leader) -> None:
    leader.controller.raises = [TimeoutError("no controller")]
    leader.caught_up(2)
    await until(lambda: len(leader.controller.asked) == 2)
    assert leader.controller.asked[0] == leader.controller.asked[1]


async def test_a_replica_that_is_refused_holds_nothing_back(leader: Leader) -> None:
    leader.controller.error = ErrorCode.INELIGIBLE_REPLICA
    leader.caught_up(2)
    await until(lambda: leader.sought == ["orders"])
    assert len(leader.controller.asked) == 1


async def test_a_fenced_broker_is_not_asked_for(leader: Leader) -> None:
    leader.show(image(fenced=(2,)))
    leader.caught_up(2)
    await until(lambda: leader.sought == ["orders"])
    assert leader.controller.asked == []


async def test_what_an_older_leader_wanted_is_dropped(leader: Leader) -> None:
    leader.caught_up(2, leader_epoch=4)
    await turns()
    assert leader.controller.asked == []


async def test_nothing_is_asked_after_the_stop(leader: Leader) -> None:
    await leader.in_sync.stop()
    leader.caught_up(2)
    await turns()
    assert leader.controller.asked == []
