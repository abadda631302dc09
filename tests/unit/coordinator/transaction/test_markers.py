"""The markers of prepared transactions: to whom, in which requests, until when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from pybroker.coordinator.runtime.errors import CoordinatorNotAvailableError
from pybroker.coordinator.transaction.events import AddPartitions, CompleteTransaction
from pybroker.coordinator.transaction.markers import MAX_OWN, MAX_PARTITIONS, TransactionMarkers
from pybroker.coordinator.transaction.metadata import TransactionMetadata
from pybroker.coordinator.transaction.own_partitions import EndedHere
from pybroker.coordinator.transaction.records import TransactionRecord
from pybroker.coordinator.transaction.states import TransactionState
from pybroker.machine.reply import Reply
from pybroker.metadata.image import (
    EMPTY_IMAGE,
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

SHARD = 3


def registration(broker: int) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker, epoch=1, incarnation_id=bytes(16), listeners={}, security_protocols={}, fenced=False
    )


def image(leaders: dict[str, list[int]], brokers: tuple[int, ...] = (1, 2)) -> MetadataImage:
    """An image of topics with these leaders of their partitions."""
    topics = {}
    for name, of_partitions in leaders.items():
        partitions = {
            index: PartitionImage(leader=leader, leader_epoch=0, partition_epoch=0, replicas=(1, 2), isr=(1, 2))
            for index, leader in enumerate(of_partitions)
        }
        topics[name] = TopicImage(name=name, topic_id=name.encode().ljust(16, b"-"), partitions=partitions)
    cluster = ClusterImage(brokers={one: registration(one) for one in brokers})
    return msgspec.structs.replace(
        EMPTY_IMAGE,
        topics=TopicsImage(by_name=topics, by_id={topic.topic_id: topic for topic in topics.values()}),
        cluster=cluster,
    )


def prepared(
    transactional_id: str, producer_id: int, *partitions: tuple[str, int], commit: bool = True
) -> TransactionRecord:
    return TransactionRecord(
        transactional_id,
        TransactionMetadata(
            producer_id=producer_id,
            producer_epoch=4,
            timeout_ms=1000,
            state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            partitions=frozenset(partitions),
            started_ms=1,
            updated_ms=1,
            client_version=2,
        ),
    )


class _Timer:
    def __init__(self, timers: list[Callable[[], None]], work: Callable[[], None]) -> None:
        self._timers, self._work = timers, work

    def cancel(self) -> None:
        if self._work in self._timers:
            self._timers.remove(self._work)


class Own:
    """The partitions of broker 1, which coordinates: appends are lists, and committed when it is said."""

    def __init__(self) -> None:
        self.appends: list[tuple[list[EndedHere], Callable[[list[int]], None]]] = []

    def takes(self, topic: str) -> bool:
        return topic != "offsets"

    def write(self, ended: Sequence[EndedHere], then: Callable[[list[int]], None]) -> None:
        self.appends.append((list(ended), then))

    def confirm(self, _added: AddPartitions, _coordinator_epoch: int) -> None:
        raise AssertionError("markers confirm nothing")

    def complete(self, *codes: ErrorCode) -> None:
        """Say what became of the oldest append; without codes all of it is written."""
        ended, then = self.appends.pop(0)
        then(list(codes) or [0] * sum(len(one.partitions) for one in ended))

    def partitions(self) -> list[tuple[str, int]]:
        """Where the oldest append goes."""
        return sorted(partition for one in self.appends[0][0] for partition in one.partitions)


class Stand:
    """Markers whose loop, brokers and machines are lists."""

    def __init__(self, leaders: dict[str, list[int]], own: Own | None = None) -> None:
        self.image = image(leaders)
        self.soon: list[Callable[[], None]] = []
        self.timers: list[Callable[[], None]] = []
        self.sent: list[tuple[int, WriteTxnMarkersRequest, Reply]] = []
        self.completed: list[tuple[int, CompleteTransaction, Reply]] = []
        self.markers = TransactionMarkers(
            lambda: self.image,
            send=self._send,
            complete=self._complete,
            soon=self.soon.append,
            later=self._later,
            node_id=1,
            own=own,
        )

    def _send(self, broker: int, request: WriteTxnMarkersRequest) -> Reply:
        self.sent.append((broker, request, reply := Reply()))
        return reply

    def _complete(self, partition: int, event: CompleteTransaction) -> Reply:
        self.completed.append((partition, event, reply := Reply()))
        return reply

    def _later(self, _delay_s: float, work: Callable[[], None]) -> Any:
        self.timers.append(work)
        return _Timer(self.timers, work)

    def commit(self, *records: TransactionRecord) -> None:
        self.markers.committed(SHARD, 9, records)
        self.turn()

    def turn(self) -> None:
        """Do what is due in the loop's next turn."""
        while self.soon:
            due, self.soon[:] = list(self.soon), []
            for work in due:
                work()

    def ring(self) -> None:
        """Let all timers ring."""
        due, self.timers[:] = list(self.timers), []
        for work in due:
            work()
        self.turn()

    def respond(self, **codes: ErrorCode) -> None:
        """Answer the oldest request; `a0` is the code of partition a-0, those that are not named are written."""
        _broker, request, reply = self.sent.pop(0)
        markers = [
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=codes.get(f"{topic.name}{index}", ErrorCode.NONE)
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
        reply(WriteTxnMarkersResponse(markers=markers), None)
        self.turn()

    def to(self) -> list[tuple[int, list[tuple[int, str, list[int]]]]]:
        """What is under way: the broker, and of each marker producer id, topic and partitions."""
        return [
            (
                broker,
                [
                    (marker.producer_id, topic.name, sorted(topic.partition_indexes))
                    for marker in request.markers
                    for topic in marker.topics
                ],
            )
            for broker, request, _ in self.sent
        ]

    def finish(self) -> None:
        """Have the oldest completion committed."""
        self.completed.pop(0)[2](None, None)


def test_each_leader_gets_the_markers_of_its_partitions_and_the_end_is_noted_after_the_last() -> None:
    stand = Stand({"a": [1, 2], "b": [1]})
    stand.commit(prepared("t", 7, ("a", 0), ("a", 1), ("b", 0)))
    assert sorted(broker for broker, _, _ in stand.sent) == [1, 2]
    (marker,) = stand.sent[0][1].markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 4, 9)
    assert (marker.transaction_result, marker.transaction_version) == (True, 2)
    stand.respond()
    assert stand.completed == []
    stand.respond()
    assert [(partition, event.transactional_id, event.identity) for partition, event, _ in stand.completed] == [
        (SHARD, "t", (7, 4))
    ]
    assert stand.markers.pending() == 1
    stand.finish()
    assert stand.markers.pending() == 0


def test_partitions_without_their_marker_are_known_until_the_end_is_noted() -> None:
    stand = Stand({"a": [1, 2]})
    assert stand.markers.without_marker(SHARD, "t") is None
    stand.commit(prepared("t", 7, ("a", 0), ("a", 1)))
    assert stand.markers.without_marker(SHARD, "t") == {("a", 0), ("a", 1)}
    first, _, _ = stand.sent[0]
    stand.respond()
    assert stand.markers.without_marker(SHARD, "t") == {("a", 2 - first)}
    stand.respond()
    assert stand.markers.without_marker(SHARD, "t") == frozenset()
    stand.finish()
    assert stand.markers.without_marker(SHARD, "t") is None
    assert stand.markers.without_marker(SHARD + 1, "t") is None


def test_other_records_have_no_markers() -> None:
    stand = Stand({"a": [1]})
    record = prepared("t", 7, ("a", 0))
    assert record.metadata is not None
    stand.commit(TransactionRecord("u", None), TransactionRecord("t", record.metadata.complete(2)))
    assert (stand.sent, stand.markers.pending()) == ([], 0)


def test_a_transaction_without_partitions_is_over_at_once() -> None:
    stand = Stand({})
    stand.commit(prepared("t", 7, commit=False))
    assert (stand.sent, len(stand.completed)) == ([], 1)


def test_clients_are_answered_before_markers_are_looked_at() -> None:
    stand = Stand({"a": [1]})
    stand.markers.committed(SHARD, 9, [prepared("t", 7, ("a", 0)), prepared("u", 8)])
    assert (stand.sent, stand.completed, len(stand.soon)) == ([], [], 1)
    assert stand.markers.without_marker(SHARD, "t") == {("a", 0)}
    stand.turn()
    assert (stand.to(), len(stand.completed)) == ([(1, [(7, "a", [0])])], 1)


def test_a_shard_that_resigns_in_the_turn_of_a_decision_sends_no_marker_of_it() -> None:
    stand = Stand({"a": [1]})
    stand.markers.committed(SHARD, 9, [prepared("t", 7, ("a", 0)), prepared("u", 8)])
    stand.markers.resigned(SHARD)
    stand.turn()
    assert (stand.sent, stand.completed, stand.markers.pending()) == ([], [], 0)


def test_what_comes_while_a_broker_is_asked_is_one_request() -> None:
    stand = Stand({"a": [1, 1]})
    stand.commit(prepared("t", 7, ("a", 0)))
    stand.commit(prepared("u", 8, ("a", 0)))
    stand.commit(prepared("v", 9, ("a", 1)))
    assert len(stand.sent) == 1
    stand.respond()
    assert stand.to() == [(1, [(8, "a", [0]), (9, "a", [1])])]


def test_a_large_transaction_is_cut() -> None:
    stand = Stand({"a": [1] * (MAX_PARTITIONS + 1)})
    stand.commit(prepared("t", 7, *(("a", index) for index in range(MAX_PARTITIONS + 1))))
    assert len(stand.to()[0][1][0][2]) == MAX_PARTITIONS
    stand.respond()
    assert stand.to() == [(1, [(7, "a", [MAX_PARTITIONS])])]
    stand.respond()
    assert len(stand.completed) == 1


def test_what_failed_goes_to_the_leader_of_then() -> None:
    stand = Stand({"a": [1, 1]})
    stand.commit(prepared("t", 7, ("a", 0), ("a", 1)))
    stand.respond(a1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (stand.sent, stand.completed) == ([], [])
    stand.image = image({"a": [1, 2]})
    stand.ring()
    assert stand.to() == [(2, [(7, "a", [1])])]
    stand.respond()
    assert len(stand.completed) == 1


def test_a_broker_that_does_not_answer_is_asked_again() -> None:
    stand = Stand({"a": [1]})
    stand.commit(prepared("t", 7, ("a", 0)))
    stand.sent.pop()[2](None, ConnectionError("gone"))
    stand.ring()
    assert stand.to() == [(1, [(7, "a", [0])])]


def test_an_answer_without_the_marker_is_none() -> None:
    stand = Stand({"a": [1]})
    stand.commit(prepared("t", 7, ("a", 0)))
    stand.sent.pop()[2](WriteTxnMarkersResponse(markers=[]), None)
    stand.ring()
    assert stand.to() == [(1, [(7, "a", [0])])]


def test_an_error_that_nobody_foresaw_is_logged_and_tried_again(caplog: Any) -> None:
    stand = Stand({"a": [1]})
    stand.commit(prepared("t", 7, ("a", 0)))
    stand.respond(a0=ErrorCode.CORRUPT_MESSAGE)
    assert "Failed to write the marker of t to a-0: CORRUPT_MESSAGE" in caplog.text
    stand.ring()
    assert len(stand.sent) == 1


def test_a_partition_without_a_leader_waits_for_one() -> None:
    stand = Stand({"a": [-1]})
    stand.commit(prepared("t", 7, ("a", 0)))
    stand.ring()
    assert stand.sent == []
    stand.image = image({"a": [2]})
    stand.markers.follow()
    stand.turn()
    assert stand.to() == [(2, [(7, "a", [0])])]
    assert stand.timers == []


def test_a_deleted_topic_needs_no_marker() -> None:
    stand = Stand({"a": [1]})
    stand.commit(prepared("t", 7, ("a", 0), ("gone", 0), ("a", 5)))
    assert stand.to() == [(1, [(7, "a", [0])])]
    stand.image = image({})
    stand.respond(a0=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    stand.ring()
    assert len(stand.completed) == 1


def test_a_fenced_coordinator_says_no_more(caplog: Any) -> None:
    stand = Stand({"a": [1, 2]})
    stand.commit(prepared("t", 7, ("a", 0), ("a", 1)))
    stand.respond(a0=ErrorCode.TRANSACTION_COORDINATOR_FENCED, a1=ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    assert "TRANSACTION_COORDINATOR_FENCED" in caplog.text
    stand.respond()
    assert (stand.completed, stand.markers.pending()) == ([], 0)


def test_after_a_resignation_nothing_is_sent_or_completed() -> None:
    stand = Stand({"a": [1, 1]})
    stand.commit(prepared("t", 7, ("a", 0)))
    stand.commit(prepared("u", 8, ("a", 1)))
    stand.markers.resigned(SHARD)
    stand.respond()
    stand.ring()
    assert (stand.sent, stand.completed, stand.markers.pending()) == ([], [], 0)


def test_a_completion_that_could_not_be_committed_is_handed_in_again() -> None:
    stand = Stand({"a": [1]})
    stand.commit(prepared("t", 7, ("a", 0)))
    stand.respond()
    stand.completed.pop()[2](None, CoordinatorNotAvailableError("too few replicas"))
    stand.ring()
    assert len(stand.completed) == 1
    stand.finish()
    assert stand.markers.pending() == 0


def test_the_next_transaction_of_a_producer_is_sent_whatever_becomes_of_the_last_completion() -> None:
    stand = Stand({"a": [1]})
    stand.commit(prepared("t", 7, ("a", 0)))
    stand.respond()
    stand.commit(prepared("t", 7, ("a", 0), commit=False))
    stand.finish()
    assert stand.markers.pending() == 1
    assert stand.sent[0][1].markers[0].transaction_result is False


def test_no_producer_is_twice_in_a_request() -> None:
    stand = Stand({"a": [1]})
    stand.commit(prepared("other", 6, ("a", 0)))
    stand.markers.committed(4, 9, [prepared("t", 7, ("a", 0))])
    stand.commit(prepared("t", 7, ("a", 0), commit=False))
    stand.respond()
    assert [len(markers) for _, markers in stand.to()] == [1]
    stand.respond()
    assert [len(markers) for _, markers in stand.to()] == [1]


def test_own_partitions_get_their_markers_without_a_request() -> None:
    own = Own()
    stand = Stand({"a": [1, 2, 1]}, own)
    stand.commit(prepared("t", 7, ("a", 0), ("a", 1), ("a", 2)))
    assert stand.to() == [(2, [(7, "a", [1])])]
    ((one,),) = (ended for ended, _then in own.appends)
    assert (sorted(one.partitions), one[1:]) == ([("a", 0), ("a", 2)], (7, 4, True, 9, 2))
    own.complete()
    assert stand.completed == []
    stand.respond()
    assert len(stand.completed) == 1


def test_markers_of_one_turn_are_one_append() -> None:
    own = Own()
    stand = Stand({"a": [1, 1]}, own)
    stand.commit(prepared("t", 7, ("a", 0)), prepared("u", 8, ("a", 1)))
    assert (len(own.appends), own.partitions()) == (1, [("a", 0), ("a", 1)])
    own.complete()
    assert [event.transactional_id for _, event, _ in stand.completed] == ["t", "u"]


def test_an_append_is_no_longer_than_others_on_the_loop_can_wait() -> None:
    own = Own()
    stand = Stand({"a": [1] * (MAX_OWN + 1)}, own)
    stand.commit(prepared("t", 7, *(("a", index) for index in range(MAX_OWN + 1))))
    assert [sum(len(one.partitions) for one in ended) for ended, _then in own.appends] == [MAX_OWN, 1]
    own.complete()
    assert stand.completed == []
    own.complete()
    assert len(stand.completed) == 1


def test_own_partitions_that_failed_go_to_the_leader_of_then() -> None:
    own = Own()
    stand = Stand({"a": [1, 1]}, own)
    stand.commit(prepared("t", 7, ("a", 0), ("a", 1)))
    moved = own.appends[0][0][0].partitions[1]
    own.complete(ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    stand.image = image({"a": [2, 2]})
    stand.ring()
    assert stand.to() == [(2, [(7, "a", [moved[1]])])]
    stand.respond()
    assert len(stand.completed) == 1


def test_where_a_group_coordinator_writes_markers_the_broker_asks_itself() -> None:
    own = Own()
    stand = Stand({"a": [1], "offsets": [1]}, own)
    stand.commit(prepared("t", 7, ("a", 0), ("offsets", 0)))
    assert (own.partitions(), stand.to()) == ([("a", 0)], [(1, [(7, "offsets", [0])])])


def test_a_fenced_coordinator_writes_no_more_to_own_partitions(caplog: Any) -> None:
    own = Own()
    stand = Stand({"a": [1]}, own)
    stand.commit(prepared("t", 7, ("a", 0)))
    own.complete(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert "INVALID_PRODUCER_EPOCH" in caplog.text
    stand.ring()
    assert (own.appends, stand.completed, stand.markers.pending()) == ([], [], 0)


def test_after_a_resignation_nothing_is_written_to_own_partitions() -> None:
    own = Own()
    stand = Stand({"a": [1, 1]}, own)
    stand.markers.committed(SHARD, 9, [prepared("t", 7, ("a", 0))])
    stand.markers.resigned(SHARD)
    stand.turn()
    assert own.appends == []
    stand.commit(prepared("u", 8, ("a", 1)))
    stand.markers.resigned(SHARD)
    own.complete()
    assert (stand.completed, stand.markers.pending()) == ([], 0)
