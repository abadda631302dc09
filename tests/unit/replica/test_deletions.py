from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pybroker.metadata.image import BrokerRegistration, ClusterImage, MetadataImage
from pybroker.protocol.errors import ErrorCode
from pybroker.replica.deletions import Deletions
from tests.support.quorums import until

TOPIC = b"t" * 16
LONG_S = 600.0


class Leader:
    """A partition whose log starts at 10, with followers 2 and 3, and what waits for them."""

    topic, index, topic_id = "t", 0, TOPIC

    def __init__(self) -> None:
        self.role = "leader"
        self.starts = {2: 0, 3: 0}
        self.alive = [1, 2, 3]
        self.watched: list[bool] = []
        self.woken = 0
        self.is_open, self.is_lost = True, False
        plane: Any = None
        partition: Any = self
        self.deletions = Deletions(
            plane,
            image=self.image,
            find=lambda _topic, _index: partition if self.is_open else None,
            is_lost=lambda _topic, _index: self.is_lost,
        )

    def image(self) -> MetadataImage:
        registered = (BrokerRegistration(id_, bytes(16), 1, {}, {}, fenced=id_ not in self.alive) for id_ in (1, 2, 3))
        return MetadataImage(cluster=ClusterImage({broker.id: broker for broker in registered}))

    def low_watermark(self, alive: list[int]) -> int:
        return min([10, *(start for id_, start in self.starts.items() if id_ in alive)])

    def await_deletion(self, awaited: bool) -> None:
        self.watched.append(awaited)

    def wake_followers(self, _data_plane: object) -> None:
        self.woken += 1

    def fetched(self, replica: int, log_start: int) -> None:
        """A follower's Fetch says where its log starts."""
        self.starts[replica] = log_start
        event: Any = SimpleNamespace(topic_id=TOPIC, index=0)
        self.deletions.deleted(event)

    def begin(self, offset: int = 10, timeout_s: float = LONG_S) -> asyncio.Task[Any]:
        partition: Any = self
        return asyncio.ensure_future(self.deletions.replicated([(partition, offset)], timeout_s))


async def begun(leader: Leader, offset: int = 10) -> asyncio.Task[Any]:
    task = leader.begin(offset)
    await until(lambda: leader.woken == 1)
    return task


async def test_a_deletion_is_done_when_the_last_live_replica_has_done_it() -> None:
    leader = Leader()
    task = await begun(leader)
    leader.fetched(2, 10)
    leader.fetched(3, 9)
    assert not task.done()
    leader.fetched(3, 10)
    assert await task == [(10, ErrorCode.NONE)]
    assert leader.watched == [True, False]


async def test_what_all_replicas_have_deleted_already_waits_for_nobody() -> None:
    leader = Leader()
    leader.starts = {2: 10, 3: 12}
    assert await leader.begin(5) == [(10, ErrorCode.NONE)]
    assert (leader.woken, leader.watched) == (0, [True, False])


async def test_a_broker_that_dies_is_not_waited_for() -> None:
    leader = Leader()
    task = await begun(leader)
    leader.fetched(2, 10)
    leader.alive = [1, 2]
    leader.deletions.published()
    assert await task == [(10, ErrorCode.NONE)]


async def test_replicas_that_take_too_long_time_the_request_out() -> None:
    leader = Leader()
    leader.starts = {2: 4, 3: 10}
    assert await leader.begin(timeout_s=0) == [(4, ErrorCode.REQUEST_TIMED_OUT)]
    assert await leader.begin(timeout_s=-1) == [(4, ErrorCode.REQUEST_TIMED_OUT)]
    assert leader.watched == [True, False, True, False]


async def test_a_leader_that_leads_no_more_says_so() -> None:
    leader = Leader()
    task = await begun(leader)
    leader.role = "follower"
    leader.deletions.published()
    assert await task == [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


async def test_a_partition_that_is_gone_or_whose_disk_failed_is_not_waited_for() -> None:
    leader = Leader()
    task = await begun(leader)
    leader.is_open = False
    leader.deletions.published()
    assert await task == [(-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    leader.is_lost = True
    assert await leader.begin() == [(-1, ErrorCode.KAFKA_STORAGE_ERROR)]


async def test_followers_are_watched_until_the_last_of_several_deletions_is_done() -> None:
    leader = Leader()
    first = await begun(leader, 5)
    second = leader.begin(10)
    await until(lambda: leader.woken == 2)
    leader.fetched(2, 10)
    leader.fetched(3, 5)
    assert await first == [(5, ErrorCode.NONE)]
    assert not second.done()
    assert leader.watched == [True, True]
    leader.fetched(3, 10)
    assert await second == [(10, ErrorCode.NONE)]
    assert leader.watched == [True, True, False]


async def test_a_request_whose_connection_is_gone_leaves_nothing_behind() -> None:
    leader = Leader()
    task = await begun(leader)
    task.cancel()
    await asyncio.wait([task])
    assert leader.watched == [True, False]
    leader.fetched(2, 10)
