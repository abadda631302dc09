"""Offsets that a transaction commits: who may commit them, and what others see until it ends."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group import events
from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.errors import IllegalGenerationError, UnknownMemberIdError
from pybroker.coordinator.group.ids import Generation, GroupId
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.member import Member
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue
from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from pybroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.groups import group_settings

TOPIC_ID = b"t" * 16


def new_machine() -> GroupMachine:
    return GroupMachine(group_settings(offset_metadata_max_bytes=10))


def commit_in(
    offset: int = 5, producer: int = 7, metadata: str = "", **request: Any
) -> events.CommitTransactionalOffsets:
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_leader_epoch=3, committed_metadata=metadata
    )
    topics = [TxnOffsetCommitRequestTopic(name="t", partitions=[partition])]
    message = TxnOffsetCommitRequest(group_id="g", producer_id=producer, producer_epoch=2, topics=topics, **request)
    return events.CommitTransactionalOffsets(message, {"t": TOPIC_ID}, guard=11)


def end(*, committed: bool, producer: int = 7) -> events.CompleteTransaction:
    return events.CompleteTransaction(producer, 2, 1, committed, 2)


def decide(machine: GroupMachine, event: Any) -> Any:
    outcome = machine.handle(event, 1_000)
    for record in outcome.records:
        machine.apply(record)
    return outcome


def fetched(machine: GroupMachine, *, stable: bool, everything: bool = False) -> list[tuple[int, int]]:
    topics = None if everything else [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    requested = events.FetchOffsets(OffsetFetchRequestGroup(group_id="g", topics=topics), stable)
    response: Any = machine.handle(requested, 1_000).reply
    return [(it.committed_offset, it.error_code) for topic in response.topics for it in topic.partitions]


def test_an_offset_of_a_transaction_is_not_seen_before_it_commits_and_is_unstable_for_those_who_ask() -> None:
    machine = new_machine()
    machine.state.put_offset("g", "t", 0, OffsetCommitValue(offset=1))
    machine.state.put_group(GroupId("g"), ClassicGroup(id=GroupId("g")))
    decide(machine, commit_in(5))
    for everything in (False, True):
        assert fetched(machine, stable=False, everything=everything) == [(1, 0)]
        assert fetched(machine, stable=True, everything=everything) == [(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)]
    decide(machine, end(committed=True))
    assert fetched(machine, stable=True) == [(5, 0)]
    (value,) = machine.state.offsets("g").values()
    assert (value.leader_epoch, value.topic_id, value.commit_timestamp) == (3, TOPIC_ID, 1_000)


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("x" * 10, ErrorCode.NONE),
        ("x" * 11, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\U0001f600" * 5, ErrorCode.NONE),
        ("\U0001f600" * 6, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_measured_in_units_of_utf_16(metadata: str, code: ErrorCode) -> None:
    reply: Any = new_machine().handle(commit_in(metadata=metadata), 1_000).reply
    assert reply.topics[0].partitions[0].error_code == code


def test_an_offset_of_a_transaction_that_aborts_never_was() -> None:
    machine = new_machine()
    decide(machine, commit_in(5))
    assert machine.state.group("g") is not None, "a commit makes its group"
    decide(machine, end(committed=False))
    assert fetched(machine, stable=True) == [(-1, 0)]
    assert not machine.state.has_open_transactions


def test_another_producers_end_changes_nothing() -> None:
    machine = new_machine()
    decide(machine, commit_in(5))
    decide(machine, end(committed=True, producer=8))
    assert fetched(machine, stable=True) == [(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)]


def test_records_name_the_producer_and_carry_the_guard() -> None:
    (record,) = decide(new_machine(), commit_in()).records
    assert (record.key.producer_id, record.key.producer_epoch, record.guard) == (7, 2, 11)
    (marker,) = decide(new_machine(), end(committed=True)).records
    assert (marker.key.committed, marker.coordinator_epoch, marker.transaction_version) == (True, 1, 2)


def test_text_that_is_too_long_is_refused_for_its_partition_alone() -> None:
    outcome = decide(new_machine(), commit_in(metadata="x" * 11))
    assert not outcome.records
    assert outcome.reply.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE


def with_classic(machine: GroupMachine, **changes: Any) -> None:
    group = ClassicGroup(id=GroupId("g"), state=ClassicState.STABLE, generation=Generation(4), **changes)
    machine.state.put_group(GroupId("g"), group)


def test_a_classic_member_that_names_itself_has_to_be_one_of_the_generation_in_force() -> None:
    machine = new_machine()
    with pytest.raises(IllegalGenerationError):
        decide(machine, commit_in(generation_id=3, member_id="m"))
    with_classic(machine)
    with pytest.raises(UnknownMemberIdError):
        decide(machine, commit_in(generation_id=4, member_id="m"))
    with pytest.raises(UnknownMemberIdError):
        decide(machine, commit_in(member_id="m"))
    assert decide(machine, commit_in()).records, "a producer of before KIP-447 names nobody"


def test_a_member_of_kip_848_has_to_name_its_epoch_and_another_one_is_a_generation_that_is_not_in_force() -> None:
    machine = new_machine()
    member = Member("m", epoch=6, previous_epoch=5)
    machine.state.put_group(GroupId("g"), ConsumerGroup(id=GroupId("g"), epoch=6, members={"m": member}))
    assert decide(machine, commit_in(generation_id=6, member_id="m")).records
    assert decide(machine, commit_in()).records
    for stale in (5, 7):
        with pytest.raises(IllegalGenerationError):
            decide(machine, commit_in(generation_id=stale, member_id="m"))
    with pytest.raises(UnknownMemberIdError):
        decide(machine, commit_in(generation_id=6, member_id="n"))
