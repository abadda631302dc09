"""Transactions over the runtime: their records in a log, fresh producer ids, markers, looks for what is overdue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from pybroker.coordinator.runtime.commits import CommitWaits
from pybroker.coordinator.runtime.errors import CoordinatorNotAvailableError, NotCoordinatorError
from pybroker.coordinator.runtime.kind import RuntimeSettings
from pybroker.coordinator.transaction.errors import ProducerFencedError
from pybroker.coordinator.transaction.events import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducerId,
    ListTransactions,
    ProducerIdentity,
)
from pybroker.coordinator.transaction.metadata import TransactionMetadata
from pybroker.coordinator.transaction.own_partitions import EndedHere
from pybroker.coordinator.transaction.service import FreshIds, TransactionCoordinator
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.coordinator.transaction.states import TransactionState
from pybroker.machine.parts import MANY
from pybroker.metadata.features import TRANSACTION_VERSION
from pybroker.metadata.image import (
    EMPTY_IMAGE,
    BrokerRegistration,
    ClusterImage,
    FeaturesImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from pybroker.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support.memory_log import MemoryLog
from tests.support.set_clock import SetClock
from tests.support.transactions import transaction_settings


def image(leader: int = 1, *, epoch: int = 0) -> MetadataImage:
    """An image of `__transaction_state` with one partition, and of the topic `a` with two."""
    state = PartitionImage(leader=leader, leader_epoch=epoch, partition_epoch=0, replicas=(1, 2), isr=(1, 2))
    mine = PartitionImage(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
    topics = [
        TopicImage(name=STATE_TOPIC, topic_id=b"s" * 16, partitions={0: state}),
        TopicImage(name="a", topic_id=b"a" * 16, partitions={0: mine, 1: mine}),
    ]
    broker = BrokerRegistration(id=1, epoch=1, incarnation_id=bytes(16), listeners={}, security_protocols={})
    return msgspec.structs.replace(
        EMPTY_IMAGE,
        topics=TopicsImage(
            by_name={topic.name: topic for topic in topics}, by_id={topic.topic_id: topic for topic in topics}
        ),
        cluster=ClusterImage(brokers={1: broker}),
        features=FeaturesImage(levels={TRANSACTION_VERSION: 2}),
    )


class LateLog(MemoryLog):
    """A log whose appends are settled when the test says so."""

    def __init__(self, commits: CommitWaits) -> None:
        super().__init__()
        self.commits = commits
        self.completed = 0
        self.waiting: list[int] = []

    def has_completed(self, end_offset: int) -> bool:
        return end_offset <= self.completed

    def complete(self, _end_offset: int, ticket: int) -> None:
        self.waiting.append(ticket)

    def complete_all(self) -> None:
        self.completed = self.log_end_offset
        waiting, self.waiting = self.waiting, []
        for ticket in waiting:
            self.commits.append_completed(ticket)


async def turn() -> None:
    """Let the loop go on by one turn."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(done.set_result, None)
    await done


async def turns_until(condition: Callable[[], bool]) -> None:
    """Let the loop go on until something is so; the test's timeout ends a wait for what never is."""
    while not condition():
        await turn()


class Own:
    """The partitions of the coordinator's broker: what they were confirmed, and what was written to them."""

    def __init__(self) -> None:
        self.confirmed: list[tuple[Any, ...]] = []
        self.written: list[EndedHere] = []

    def takes(self, _topic: str) -> bool:
        return True

    def write(self, ended: Sequence[EndedHere], then: Callable[[list[int]], None]) -> None:
        self.written += ended
        then([0] * sum(len(one.partitions) for one in ended))

    def confirm(self, added: AddPartitions, coordinator_epoch: int) -> None:
        assert self.written == []
        self.confirmed.append((added, coordinator_epoch))


class Stand:
    """A coordinator over one log, whose broker writes every marker at once unless it is held."""

    def __init__(
        self,
        log: MemoryLog | None = None,
        commits: CommitWaits | None = None,
        first_id: int = 100,
        own: Own | None = None,
    ) -> None:
        self.commits = commits or CommitWaits()
        self.log = MemoryLog() if log is None else log
        self.clock = SetClock()
        self.ids = iter(range(first_id, first_id + 2))
        self.refilled = iter(range(first_id + 500, first_id + 1000))
        self.markers: list[WriteTxnMarkersRequest] = []
        self.held: asyncio.Event | None = None
        self.transactions = TransactionCoordinator(
            transaction_settings(abort_interval_ms=1000),
            RuntimeSettings(node_id=1, partitions=1, commit_timeout_ms=5000, load_bytes=1 << 20),
            open_log=lambda _index: self.log,
            commits=self.commits,
            fresh_ids=FreshIds(lambda: next(self.ids, None), self._refill),
            query_broker=self._write_markers,
            own=own,
            clock=self.clock,
        )

    async def begin(self, **of_image: int) -> None:
        self.transactions.follow(image(**of_image))
        await self.transactions.loaded()

    async def init(self, transactional_id: str = "t") -> Any:
        return await self.transactions.submit_with_id(InitProducerId(transactional_id, 60_000))

    async def add(self, had: ProducerIdentity, transactional_id: str = "t") -> None:
        event = AddPartitions(transactional_id, had, frozenset({("a", 0), ("a", 1)}), 2)
        await self.transactions.submit(transactional_id, event)

    async def end(self, had: ProducerIdentity) -> Any:
        return await self.transactions.submit_with_id(EndTransaction("t", had, commit=True, client_version=2))

    async def known(self, transactional_id: str = "t") -> TransactionMetadata:
        known: TransactionMetadata = await self.transactions.submit(
            transactional_id, DescribeTransaction(transactional_id)
        )
        return known

    async def in_state(self, state: TransactionState) -> None:
        async def is_there() -> bool:
            return (await self.known()).state is state

        while not await is_there():
            await turn()

    async def _refill(self) -> int:
        await turn()
        return next(self.refilled)

    async def _write_markers(self, broker: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        assert broker == 1
        self.markers.append(request)
        if self.held is not None:
            await self.held.wait()
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(partition_index=one) for one in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )


async def test_a_transaction_is_committed_with_its_markers() -> None:
    stand = Stand()
    await stand.begin(epoch=3)
    had = await stand.init()
    await stand.add(had)
    assert await stand.end(had) == (100, 1)
    await stand.in_state(TransactionState.COMPLETE_COMMIT)
    ((marker,),) = [request.markers for request in stand.markers]
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (100, 1, 3)
    assert [sorted(topic.partition_indexes) for topic in marker.topics] == [[0, 1]]
    assert stand.transactions.pending_markers() == 0
    await stand.transactions.close()


async def test_the_answer_does_not_wait_for_markers() -> None:
    stand = Stand()
    stand.held = asyncio.Event()
    await stand.begin()
    had = await stand.init()
    await stand.add(had)
    await stand.end(had)
    assert (await stand.known()).state is TransactionState.PREPARE_COMMIT
    stand.held.set()
    await stand.in_state(TransactionState.COMPLETE_COMMIT)
    await stand.transactions.close()


async def test_markers_wait_until_the_decision_is_committed() -> None:
    commits = CommitWaits()
    log = LateLog(commits)
    stand = Stand(log, commits)
    await stand.begin()
    querying = asyncio.ensure_future(stand.init())
    await turns_until(lambda: len(log.waiting) == 1)
    log.complete_all()
    had = await querying
    adding = asyncio.ensure_future(stand.add(had))
    await turns_until(lambda: len(log.waiting) == 1)
    log.complete_all()
    await adding
    ending = asyncio.ensure_future(stand.end(had))
    await turns_until(lambda: len(log.waiting) == 1)
    await turn()
    assert (stand.markers, ending.done()) == ([], False)
    log.complete_all()
    await ending
    await turns_until(lambda: len(log.waiting) == 1)
    assert len(stand.markers) == 1
    log.complete_all()
    await stand.in_state(TransactionState.COMPLETE_COMMIT)
    await stand.transactions.close()


async def test_the_next_coordinator_goes_on_with_what_was_prepared() -> None:
    stand = Stand()
    stand.held = asyncio.Event()
    await stand.begin()
    had = await stand.init()
    await stand.add(had)
    await stand.end(had)
    await stand.transactions.close()
    after = Stand(stand.log)
    await after.begin(epoch=7)
    await after.in_state(TransactionState.COMPLETE_COMMIT)
    assert [marker.coordinator_epoch for request in after.markers for marker in request.markers] == [7]
    await after.transactions.close()


async def test_what_was_loaded_has_no_consequences_before_it_is_committed() -> None:
    stand = Stand()
    stand.held = asyncio.Event()
    await stand.begin()
    had = await stand.init()
    await stand.add(had)
    await stand.end(had)
    await stand.transactions.close()
    commits = CommitWaits()
    log = LateLog(commits)
    log.batches, log.log_end_offset = stand.log.batches, stand.log.log_end_offset
    after = Stand(log, commits)
    await after.begin(epoch=7)
    for _ in range(5):
        await turn()
    assert after.markers == []
    log.complete_all()
    await turns_until(lambda: len(log.waiting) == 1)
    assert len(after.markers) == 1
    log.complete_all()
    await after.transactions.close()


async def test_a_coordinator_that_has_resigned_sends_nothing_more() -> None:
    stand = Stand()
    stand.held = asyncio.Event()
    await stand.begin()
    had = await stand.init()
    await stand.add(had)
    await stand.end(had)
    await turns_until(lambda: len(stand.markers) == 1)
    stand.transactions.follow(image(leader=2, epoch=1))
    stand.held.set()
    for _ in range(5):
        await turn()
    assert stand.transactions.pending_markers() == 0
    with pytest.raises(NotCoordinatorError):
        stand.transactions.submit("t", DescribeTransaction("t"))
    await stand.transactions.close()
    with pytest.raises(CoordinatorNotAvailableError):
        stand.transactions.submit("t", DescribeTransaction("t"))


async def test_producer_ids_are_used_where_they_are_needed_and_a_new_block_is_waited_for() -> None:
    stand = Stand()
    await stand.begin()
    given = [await stand.init(name) for name in ("t", "t", "u", "u", "v", "w")]
    assert given == [(100, 0), (100, 1), (101, 0), (101, 1), (600, 0), (601, 0)]
    await stand.transactions.close()


async def test_what_was_open_for_too_long_is_aborted_when_it_is_looked_for() -> None:
    stand = Stand()
    await stand.begin()
    had = await stand.init()
    await stand.add(had)
    stand.clock.advance(60_001)
    await stand.in_state(TransactionState.COMPLETE_ABORT)
    assert (await stand.known()).producer_epoch == 1
    assert [marker.transaction_result for request in stand.markers for marker in request.markers] == [False]
    await stand.transactions.close()


async def test_times_are_those_of_the_day_however_the_clock_was_set_meanwhile() -> None:
    """They are written down, and compared by another broker, or after a start anew."""
    stand = Stand()
    await stand.begin()
    stand.clock.set_by_ms = 3_600_000
    had = await stand.init()
    await stand.add(had)
    known = await stand.known()
    assert (known.updated_ms, known.started_ms) == (4_600_000, 4_600_000)
    stand.clock.advance(59_000)
    assert (await stand.known()).state is TransactionState.ONGOING
    stand.clock.advance(1_001)
    await stand.in_state(TransactionState.COMPLETE_ABORT)
    await stand.transactions.close()


async def test_all_shards_are_listed() -> None:
    stand = Stand()
    await stand.begin()
    await stand.init("t")
    await stand.init("u")
    ((listed, _now),) = await stand.transactions.submit_all(ListTransactions())
    assert [transactional_id for transactional_id, _ in listed] == ["t", "u"]
    await stand.transactions.close()


PARTITIONS = frozenset({("a", 0), ("a", 1)})


async def test_own_partitions_learn_of_a_transaction_when_it_is_committed() -> None:
    commits, own = CommitWaits(), Own()
    log = LateLog(commits)
    stand = Stand(log, commits, own=own)
    await stand.begin(epoch=3)
    querying = asyncio.ensure_future(stand.init())
    await turns_until(lambda: len(log.waiting) == 1)
    log.complete_all()
    had = await querying
    event = AddPartitions("t", had, PARTITIONS, 0)
    added = stand.transactions.add(event)
    ended = stand.transactions.submit_with_id(EndTransaction("t", had, commit=True, client_version=2))
    await turns_until(lambda: len(log.waiting) == 1)
    assert own.confirmed == []
    log.complete_all()
    await added
    assert own.confirmed == [(event, 3)]
    # The end was decided in the same batch, and its markers come after that all the same.
    await ended
    await turns_until(lambda: len(log.waiting) == 1)
    assert [(one.partitions, one.producer_epoch) for one in own.written] == [([("a", 0), ("a", 1)], 1)]
    log.complete_all()
    await stand.in_state(TransactionState.COMPLETE_COMMIT)
    await stand.transactions.close()


async def test_what_is_refused_confirms_nothing() -> None:
    own = Own()
    stand = Stand(own=own)
    await stand.begin()
    had = await stand.init()
    with pytest.raises(ProducerFencedError):
        await stand.transactions.add(AddPartitions("t", had._replace(producer_epoch=7), PARTITIONS, 0))
    assert own.confirmed == []
    await stand.transactions.close()


async def test_a_coordinator_says_whether_partitions_are_part_of_a_transaction() -> None:
    stand = Stand()
    await stand.begin()
    had = await stand.init()
    one, other = ("a", 0), ("a", 1)
    verify = stand.transactions.verify
    for partition, adds, expected in [
        (one, False, False),
        (one, True, True),
        (one, False, True),
        (other, False, False),
    ]:
        reply = verify("t", had, [partition], adds=adds)
        assert reply is not None
        assert await reply is expected
    assert (await stand.known()).partitions == frozenset({one})
    await stand.transactions.close()


async def test_another_broker_may_know_what_this_one_does_not() -> None:
    stand = Stand()
    await stand.begin()
    had = await stand.init()
    assert stand.transactions.verify("t", had, [("a", 0), ("a", 2)], adds=True) is None
    assert stand.transactions.verify("t", had, [("b", 0)], adds=True) is None
    assert stand.transactions.verify("t", had, [("a", 0)] * (MANY + 1), adds=True) is None
    assert (await stand.known()).partitions == frozenset()
    stand.transactions.follow(image(leader=2, epoch=1))
    assert stand.transactions.verify("t", had, [("a", 0)], adds=True) is None
    await stand.transactions.close()
