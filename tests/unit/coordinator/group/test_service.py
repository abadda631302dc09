"""The service: who coordinates what, loading and unloading, and the answers when the log fails."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import msgspec
import pytest

from pybroker.coordinator.group import service as service_module
from pybroker.coordinator.group.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
from pybroker.coordinator.group.events import Client, CommitOffsets, FetchOffsets, JoinGroup, ListGroups
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.group.service import GroupCoordinator, by_partition
from pybroker.machine.runner import ClosedError, UncommittedError, UnwritableError
from pybroker.machine.slices import whole
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage, TopicsImage
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from pybroker.storage.errors import BatchTooLargeError, NotEnoughReplicasError, NotLeaderError
from tests.support.groups import group_settings

HEADER = 61
TOPIC_ID = b"t" * 16


class MemoryLog:
    """A partition's log in memory."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.failure: Exception | None = None
        # None: what is appended is settled at once. Otherwise up to where it is.
        self.synced: int | None = None
        self.tickets: list[int] = []
        self.max_batch_bytes = 1 << 20

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    def has_settled(self, end_offset: int) -> bool:
        return self.synced is None or self.synced >= end_offset

    def settle(self, _end_offset: int, ticket: int) -> None:
        self.tickets.append(ticket)

    def append(self, batches: bytes, _now_ms: int) -> tuple[int, int]:
        if self.failure is not None:
            raise self.failure
        first, cut = self.log_end_offset, []
        while batches:
            size = 12 + int.from_bytes(batches[8:12])
            cut.append(batches[:size])
            batches = batches[size:]
        if any(len(batch) > self.max_batch_bytes for batch in cut):
            raise BatchTooLargeError("a batch is too large")
        for batch in cut:
            self.batches.append(self.log_end_offset.to_bytes(8) + batch[8:])
            self.log_end_offset += int.from_bytes(batch[57:HEADER])
        return first, self.log_end_offset - 1

    def read(self, offset: int, max_bytes: int) -> bytes:
        found = b"".join(batch for batch in self.batches if int.from_bytes(batch[:8]) >= offset)
        return found[: max(max_bytes, 12 + int.from_bytes(found[8:12]))]


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


class Stand:
    """A coordinator over logs in memory."""

    def __init__(
        self, partitions: int = 2, logs: dict[int, MemoryLog] | None = None, commit_timeout_ms: int = 5000
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
        )


def commit(group: str = "g", offset: int = 5, metadata: str = "") -> CommitOffsets:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
    topic = OffsetCommitRequestTopic(name="t", topic_id=TOPIC_ID, partitions=[partition])
    return CommitOffsets(OffsetCommitRequest(group_id=group, topics=[topic]), 9)


def fetch(group: str = "g") -> FetchOffsets:
    return FetchOffsets(OffsetFetchRequestGroup(group_id=group, topics=None))


def offsets(answer: Any) -> list[int]:
    return [partition.committed_offset for topic in answer.topics for partition in topic.partitions]


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


async def test_commits_of_one_wake_up_are_one_append_and_are_answered_within_the_step() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    answers: list[Any] = []
    for number in range(100):
        stand.groups.submit("g", commit(offset=number)).on_complete(lambda reply, error: answers.append((reply, error)))
    stand.groups.step()
    assert len(answers) == 100
    assert [error for _, error in answers if error is not None] == []
    assert len(stand.logs[0].batches) == 1
    assert offsets(await stand.groups.submit("g", fetch())) == [99]
    await stand.groups.close()


async def test_an_event_waits_for_the_step_that_is_expected_and_otherwise_for_the_turn_of_the_loop() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    assert offsets(await stand.groups.submit("g", fetch())) == []
    stand.groups.expect_step()
    reply = stand.groups.submit("g", commit(offset=7))
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned
    assert not reply.is_set
    stand.groups.step()
    assert reply.is_set
    assert offsets(await stand.groups.submit("g", fetch())) == [7]
    await stand.groups.close()


async def test_a_commit_that_has_to_be_synced_is_answered_when_the_sync_is_reported() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    log = stand.logs[0]
    log.synced = 0
    answers: list[tuple[Any, Exception | None]] = []

    def note(reply: Any, error: Exception | None) -> None:
        answers.append((reply, error))

    stand.groups.submit("g", commit(offset=1)).on_complete(note)
    stand.groups.step()
    stand.groups.submit("g", commit(offset=2)).on_complete(note)
    stand.groups.submit("g", commit(offset=3)).on_complete(note)
    stand.groups.step()
    assert answers == []
    assert len(log.batches) == 1, "one append at a time: what comes meanwhile is the next one"
    log.synced = log.log_end_offset
    stand.groups.append_settled(log.tickets.pop())
    assert [error for _, error in answers] == [None]
    log.synced = 1
    stand.groups.step()
    assert (len(log.batches), len(answers)) == (2, 1)
    log.synced = log.log_end_offset
    stand.groups.append_settled(log.tickets.pop())
    assert [error for _, error in answers] == [None, None, None]
    assert offsets(await stand.groups.submit("g", fetch())) == [3]
    await stand.groups.close()


async def test_a_commit_that_cannot_be_synced_is_undone_and_fails() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    await stand.groups.submit("g", commit(offset=1))
    log = stand.logs[0]
    log.synced = 0
    reply = stand.groups.submit("g", commit(offset=2))
    stand.groups.step()
    stand.groups.append_settled(log.tickets.pop())
    with pytest.raises(NotCoordinatorError):
        await reply
    assert offsets(await stand.groups.submit("g", fetch())) == [1]
    await stand.groups.close()


async def test_a_commit_that_takes_too_long_to_sync_fails_and_holds_up_no_stop() -> None:
    stand = Stand(1, commit_timeout_ms=1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    stand.logs[0].synced = 0
    first, behind = stand.groups.submit("g", commit()), None
    stand.groups.step()
    behind = stand.groups.submit("g", commit())
    for reply in (first, behind):
        with pytest.raises(UncommittedError):
            await reply
    await asyncio.wait_for(stand.groups.close(), 5)


async def test_records_that_fit_no_batch_fail_their_event_alone() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    stand.logs[0].max_batch_bytes = 2000
    asked = [stand.groups.submit("g", commit(f"g{n}", n, "x" * (3000 if n == 13 else 30))) for n in range(40)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [n for n, reply in enumerate(answers) if isinstance(reply, BaseException)] == [13]
    assert isinstance(answers[13], UnwritableError)
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


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (NotLeaderError("moved"), NotCoordinatorError),
        (OSError(28, "no space"), NotCoordinatorError),
        (NotEnoughReplicasError("alone"), CoordinatorNotAvailableError),
        (BatchTooLargeError("large"), UnwritableError),
    ],
)
async def test_a_commit_that_cannot_be_written_fails_and_is_not_seen(failure: Exception, kind: type[Exception]) -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    stand.logs[0].failure = failure
    with pytest.raises(kind) as raised:
        await stand.groups.submit("g", commit())
    assert type(raised.value) is kind
    stand.logs[0].failure = None
    assert offsets(await stand.groups.submit("g", fetch())) == []
    await stand.groups.close()


async def test_a_log_that_is_damaged_is_not_coordinated(caplog: pytest.LogCaptureFixture) -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    await stand.groups.submit("g", commit())
    stand.logs[0].batches[0] = stand.logs[0].batches[0][:-3] + b"\xff\xff\xff"
    after = Stand(logs=stand.logs)
    after.groups.follow(image(1))
    await after.groups.loaded()
    with pytest.raises(NotCoordinatorError):
        after.groups.submit("g", fetch())
    assert "cannot be loaded" in caplog.text
    await stand.groups.close()
    await after.groups.close()


@pytest.mark.parametrize("failure", [RuntimeError("a fault"), KeyError("a", "b"), RecursionError()])
async def test_a_log_that_cannot_be_loaded_for_whatever_reason_is_not_coordinated(
    failure: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise failure

    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    await stand.groups.submit("g", commit())
    after = Stand(logs=stand.logs)
    with monkeypatch.context() as patched:
        patched.setattr(GroupMachine, "load", fail)
        after.groups.follow(image(1))
        await after.groups.loaded()
    with pytest.raises(NotCoordinatorError):
        after.groups.submit("g", fetch())
    (logged,) = [record for record in caplog.records if "cannot be loaded" in record.getMessage()]
    assert logged.exc_info is not None, "what nobody expected is logged with its place"
    after.groups.follow(image(1, epoch=1))
    await after.groups.loaded()
    assert offsets(await after.groups.submit("g", fetch())) == [5], "the next election tries again"
    await stand.groups.close()
    await after.groups.close()


async def test_a_log_that_lacks_a_descriptor_is_loaded_later(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    await stand.groups.submit("g", commit())
    after = Stand(logs=stand.logs)
    monkeypatch.setattr(service_module, "_AGAIN_S", 0)
    refusals = [OSError(errno.EMFILE, "too many"), OSError(errno.EMFILE, "too many")]
    read = stand.logs[0].read

    def lacking(*asked: int) -> object:
        if refusals:
            raise refusals.pop()
        return read(*asked)

    monkeypatch.setattr(stand.logs[0], "read", lacking)
    after.groups.follow(image(1))
    await after.groups.loaded()
    assert refusals == []
    assert offsets(await after.groups.submit("g", fetch())) == [5]
    await stand.groups.close()
    await after.groups.close()


async def test_a_log_that_is_opened_later_is_loaded_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand(1)
    with monkeypatch.context() as closed:
        closed.setattr(stand.groups, "_open_log", lambda index: None)
        stand.groups.follow(image(1))
        await stand.groups.loaded()
    with pytest.raises(NotCoordinatorError):
        stand.groups.submit("g", fetch())
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    await stand.groups.submit("g", commit())
    assert offsets(await stand.groups.submit("g", fetch())) == [5]
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

    await asyncio.wait_for(forgotten(), 5)
    assert offsets(await stand.groups.submit("g", fetch())) == []
    await stand.groups.close()


async def test_a_long_log_is_loaded_in_turns_of_the_loop() -> None:
    stand = Stand(1)
    stand.groups.follow(image(1))
    await stand.groups.loaded()
    for number in range(200):
        for group in range(20):
            stand.groups.submit("g", commit(f"g{group}", number * 100 + group))
        stand.groups.step()
    after = GroupCoordinator(
        group_settings(),
        node_id=1,
        partitions=1,
        codec=0,
        commit_timeout_ms=5000,
        load_bytes=4096,
        open_log=stand.logs.get,
    )
    after.follow(image(1, epoch=1))
    turns = 0
    loading = asyncio.ensure_future(after.loaded())
    while not loading.done():
        await asyncio.wait([loading], timeout=0)
        turns += 1
    assert turns > 20
    assert offsets(await after.submit("g", fetch("g7"))) == [19_907]
    await stand.groups.close()
    await after.close()
