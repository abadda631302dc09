"""Groups over the runtime: their records in a log, their partitions, their settings and topics."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pybroker.coordinator.group.events import (
    Client,
    CommitOffsets,
    CommitTransactionalOffsets,
    DeleteGroups,
    FetchOffsets,
    JoinGroup,
    ListGroups,
)
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.group.service import GroupCoordinator, by_partition
from pybroker.coordinator.runtime.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
from pybroker.machine.clock import SYSTEM_CLOCK, Clock
from pybroker.machine.runner import ClosedError, UnwritableError
from pybroker.machine.slices import whole
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage, TopicsImage
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from pybroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pybroker.storage.errors import InvalidProducerEpochError, NotLeaderError
from tests.support.batches import TRANSACTIONAL
from tests.support.groups import group_settings
from tests.support.memory_log import MemoryLog
from tests.support.set_clock import SetClock

TOPIC_ID = b"t" * 16


def image(*leaders: int, epoch: int = 0, others: tuple[str, ...] = ("t",)) -> MetadataImage:
    """An image of the offsets topic with these leaders of its partitions, and of topics with one partition."""
    partitions = {
        index: PartitionImage(leader=leader, leader_epoch=epoch, partition_epoch=0, replicas=(leader,), isr=(leader,))
        for index, leader in enumerate(leaders)
    }
    one = {0: PartitionImage(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))}
    topics = [TopicImage(name=name, topic_id=name.encode().ljust(16, b"t"), partitions=one) for name in others]
    if partitions:
        topics.append(TopicImage(name=OFFSETS_TOPIC, topic_id=b"o" * 16, partitions=partitions))
    by_name, by_id = {topic.name: topic for topic in topics}, {topic.topic_id: topic for topic in topics}
    return msgspec.structs.replace(EMPTY_IMAGE, topics=TopicsImage(by_name=by_name, by_id=by_id))


DAY_MS = 24 * 60 * 60 * 1000


class Stand:
    """A coordinator over logs in memory."""

    def __init__(
        self,
        partitions: int = 2,
        logs: dict[int, MemoryLog] | None = None,
        commit_timeout_ms: int = 5000,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.logs = {index: MemoryLog() for index in range(partitions)} if logs is None else logs
        self.groups = GroupCoordinator(
            group_settings(initial_rebalance_delay_ms=60_000),
            node_id=1,
            partitions=partitions,
            codec=0,
            commit_timeout_ms=commit_timeout_ms,
            load_bytes=1 << 20,
            open_log=self.logs.get,
            clock=clock,
        )


def commit(group: str = "g", offset: int = 5, metadata: str = "", partitions: int = 1) -> CommitOffsets:
    committed = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index in range(partitions)
    ]
    topic = OffsetCommitRequestTopic(name="t", topic_id=TOPIC_ID, partitions=committed)
    return CommitOffsets(OffsetCommitRequest(group_id=group, topics=[topic]), 9)


def fetch(group: str = "g") -> FetchOffsets:
    return FetchOffsets(OffsetFetchRequestGroup(group_id=group, topics=None))


def offsets(response: Any) -> list[int]:
    return [partition.committed_offset for topic in response.topics for partition in topic.partitions]


async def test_what_one_coordinator_took_the_next_one_knows() -> None:
    stand = Stand()
    stand.groups.follow(image(1, 1))
    await stand.groups.loaded()
    for number in range(20):
        await stand.groups.submit(f"g{number}", commit(f"g{number}", number))
    after = Stand(logs=stand.logs)
    after.groups.follow(image(1, 1, epoch=1))
    await after.groups.loaded()
    for number in range(20):
        assert offsets(await after.groups.submit(f"g{number}", fetch(f"g{number}"))) == [number]
    listed = [group for groups in await after.groups.submit_all(ListGroups()) for group in groups]
    assert len(listed) == 20
    await stand.groups.close()
    await after.groups.close()


async def test_offsets_live_as_long_as_they_are_to_however_the_clock_was_set_before_they_were_committed() -> None:
    """A machine that slept has set its time of day: their times are written down, and hold after a start anew."""
    clock = SetClock()
    stand = Stand(1, clock=clock)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    clock.set_by_ms = 6 * DAY_MS
    await stand.groups.submit("g", commit())
    await stand.groups.close()
    clock.now_ms, clock.set_by_ms = clock.wall_ms(), 0
    after = Stand(logs=stand.logs, clock=clock)
    after.groups.follow(image(1, epoch=1))
    await after.groups.loaded()
    clock.advance(0)  # what is due when a shard is loaded
    for left in ([5], []):
        clock.advance(4 * DAY_MS)
        after.groups.step()
        assert offsets(await after.groups.submit("g", fetch())) == left
    await after.groups.close()


async def test_commits_of_one_wake_up_are_one_append_and_are_answered_within_the_step() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    responses: list[Any] = []
    for number in range(100):
        stand.groups.submit("g", commit(offset=number)).on_complete(
            lambda reply, error: responses.append((reply, error))
        )
    stand.groups.step()
    assert len(responses) == 100
    assert [error for _, error in responses if error is not None] == []
    assert len(stand.logs[0].batches) == 1
    assert offsets(await stand.groups.submit("g", fetch())) == [99]
    await stand.groups.close()


async def test_records_that_fit_no_batch_fail_their_event_alone() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    stand.logs[0].max_batch_bytes = 2000
    requested = [stand.groups.submit("g", commit(f"g{n}", n, "x" * (3000 if n == 13 else 30))) for n in range(40)]
    responses = await asyncio.gather(*requested, return_exceptions=True)
    assert [n for n, reply in enumerate(responses) if isinstance(reply, BaseException)] == [13]
    assert isinstance(responses[13], UnwritableError)
    for n in range(40):
        assert offsets(await stand.groups.submit("g", fetch(f"g{n}"))) == ([] if n == 13 else [n])
    await stand.groups.close()


async def test_only_the_leader_of_a_groups_partition_coordinates_it() -> None:
    stand = Stand()
    with pytest.raises(NotCoordinatorError):
        stand.groups.submit("g", fetch())
    stand.groups.follow(image(1, 2))
    with pytest.raises(CoordinatorLoadInProgressError):
        stand.groups.submit_to(0, fetch())
    with pytest.raises(CoordinatorLoadInProgressError):
        await stand.groups.submit_all(ListGroups())
    await stand.groups.loaded()
    await stand.groups.submit_to(0, ListGroups())
    with pytest.raises(NotCoordinatorError):
        stand.groups.submit_to(1, fetch())
    assert {index for index, _ in whole(by_partition(["a", "b", "c"], stand.groups))} <= {0, 1}
    await stand.groups.close()
    with pytest.raises(CoordinatorNotAvailableError):
        stand.groups.submit_to(0, fetch())


async def test_who_waits_is_sent_away_when_the_partition_moves() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    waits = asyncio.ensure_future(_awaited(stand.groups.submit("g", JoinGroup(request, 3, Client("c", "/h"), "id"))))
    stand.groups.step()
    stand.groups.follow(image(2, epoch=1))
    with pytest.raises(ClosedError):
        await waits
    with pytest.raises(NotCoordinatorError):
        stand.groups.submit("g", fetch())
    await stand.groups.close()


async def _awaited(reply: Any) -> Any:
    return await reply


async def test_a_log_that_is_damaged_is_not_coordinated(caplog: pytest.LogCaptureFixture) -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    await stand.groups.submit("g", commit())
    batch = stand.logs[0].batches[0]
    stand.logs[0].batches[0] = batch[:8] + (1).to_bytes(4) + batch[12:]
    after = Stand(logs=stand.logs)
    after.groups.follow(image(1))
    await after.groups.loaded()
    with pytest.raises(NotCoordinatorError):
        after.groups.submit("g", fetch())
    assert "cannot be loaded: no batch found at or after offset 0" in caplog.text
    await stand.groups.close()
    await after.groups.close()


async def test_changed_settings_hold_in_the_shards_that_are_there_and_in_those_that_come() -> None:
    stand = Stand()
    stand.groups.follow(image(1, 2))
    await stand.groups.loaded()
    stand.groups.reconfigure(group_settings(offset_metadata_max_bytes=1))
    stand.groups.follow(image(1, 1))
    await stand.groups.loaded()
    for partition in (0, 1):
        response = await stand.groups.submit_to(partition, commit(metadata="too long"))
        assert [p.error_code for t in response.topics for p in t.partitions] == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    await stand.groups.close()


async def test_offsets_of_a_deleted_topic_are_forgotten() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    await stand.groups.submit("g", commit())
    stand.groups.follow(image(1, others=()))

    async def forgotten() -> None:
        while offsets(await stand.groups.submit("g", fetch())):
            pass

    await asyncio.wait_for(forgotten(), 60)
    assert offsets(await stand.groups.submit("g", fetch())) == []
    await stand.groups.close()


async def test_what_goes_of_many_groups_goes_in_several_decisions() -> None:
    """A decision about all offsets of a partition would hold the loop."""
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    names = [f"g{number}" for number in range(8)]
    for name in names:
        await stand.groups.submit(name, commit(name, partitions=700))
    deleted = await stand.groups.submit_to(0, DeleteGroups(names))
    assert [result.group_id for result in deleted] == names[:3]
    written = len(stand.logs[0].batches)
    stand.groups.follow(image(1, others=()))

    async def forgotten() -> None:
        while any([offsets(await stand.groups.submit(name, fetch(name))) for name in names]):
            pass

    await asyncio.wait_for(forgotten(), 60)
    assert len(stand.logs[0].batches) == written + 2, "three groups, and two"
    await stand.groups.close()


def commit_in(group: str = "g", offset: int = 5, *, guard: int | None = 0) -> CommitTransactionalOffsets:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [TxnOffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = TxnOffsetCommitRequest(group_id=group, producer_id=7, producer_epoch=2, topics=topics)
    return CommitTransactionalOffsets(request, {"t": TOPIC_ID}, guard)


async def test_offsets_of_a_transaction_count_when_its_marker_is_written_here_or_was_before() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    await stand.groups.submit("g", commit_in(offset=5))
    await stand.groups.submit("h", commit_in("h", offset=6))
    assert offsets(await stand.groups.submit("g", fetch())) == []
    between = Stand(logs=stand.logs)
    between.groups.follow(image(1, epoch=1))
    await between.groups.loaded()
    assert offsets(await between.groups.submit("g", fetch())) == []
    await between.groups.complete_transaction(0, 7, 3, 1, True, 2)
    after = Stand(logs=stand.logs)
    after.groups.follow(image(1, epoch=2))
    await after.groups.loaded()
    for coordinator in (between, after):
        assert offsets(await coordinator.groups.submit("g", fetch())) == [5]
        assert offsets(await coordinator.groups.submit("h", fetch("h"))) == [6]
    for coordinator in (stand, between, after):
        await coordinator.groups.close()


async def test_a_commit_in_a_transaction_is_an_append_of_its_own_and_carries_its_guard() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    requested = [commit(offset=1), commit_in(guard=11), commit_in(guard=None), commit(offset=2), commit(offset=3)]
    await asyncio.gather(*(stand.groups.submit("g", event) for event in requested))
    (log,) = stand.logs.values()
    assert log.guards == [11, None]
    attributes = [int.from_bytes(batch[21:23]) for batch in log.batches]
    assert attributes == [0, TRANSACTIONAL, TRANSACTIONAL, 0]
    assert [int.from_bytes(batch[43:51]) for batch in log.batches[1:3]] == [7, 7], "the producer's id"
    assert [int.from_bytes(batch[51:53]) for batch in log.batches[1:3]] == [2, 2], "and its epoch"
    await stand.groups.close()


async def test_what_the_log_says_of_a_transaction_fails_it_alone_and_changes_nothing() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    stand.logs[0].refusal = InvalidProducerEpochError("another epoch")
    requested = [commit(offset=1), commit_in(), commit(offset=2)]
    replies = [stand.groups.submit("g", event) for event in requested]
    replies.append(stand.groups.complete_transaction(0, 7, 2, 1, True))
    responses = await asyncio.gather(*replies, return_exceptions=True)
    assert [isinstance(response, InvalidProducerEpochError) for response in responses] == [False, True, False, True]
    assert offsets(await stand.groups.submit("g", FetchOffsets(fetch().group, require_stable=True))) == [2]
    await stand.groups.close()


async def test_a_verification_begins_in_the_log_of_the_groups_partition() -> None:
    stand = Stand(1)
    with pytest.raises(NotCoordinatorError):
        stand.groups.begin_verification("g", 7, 2, bumps_epoch=True)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    assert stand.groups.begin_verification("g", 7, 2, bumps_epoch=True) == 73
    stand.logs[0].refusal = NotLeaderError("another broker leads")
    with pytest.raises(NotCoordinatorError):
        stand.groups.begin_verification("g", 7, 2, bumps_epoch=False)
    await stand.groups.close()
