"""Offsets that are committed in transactions, in raw frames: KIP-98's way, and KIP-447's fencing by the group.

Claims hold of Apache Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from pybroker.protocol.codec import decode, encode
from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.conformance.classic_members import Member, commit
from tests.conformance.conftest import Server, Topic, coordinated, serves
from tests.conformance.transactions import (
    ABORT,
    COMMIT,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    INVALID_GROUP_ID,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    OK,
    TRANSACTION_ABORTABLE,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
    Transactional,
    offset_of,
)
from tests.support.conditions import wait_until
from tests.support.wire import Wire, header

pytestmark = pytest.mark.one_and_three

OFFSETS_TOPIC = "__consumer_offsets"
NONE_YET = (-1, OK)
NewProducer = Callable[[], Transactional]


@pytest.fixture(autouse=True)
def _served(server: Server) -> None:
    if not serves(server, 28):
        pytest.skip("this broker has no offsets in transactions yet")


def waits_for_offset(wire: Wire, group: str, topic: str, offset: int) -> None:
    """Markers are written after EndTxn's answer: wait until the group has an offset that no transaction holds."""
    wait_until(
        lambda: offset_of(wire, group, topic, require_stable=True) == (offset, OK),
        within=60,
        what=lambda: f"{group} has {offset}, not {offset_of(wire, group, topic, require_stable=True)}",
    )


# -------------------------------------------------------------------------------------------------------------- KIP-98


@pytest.mark.parametrize("version", range(5))
def test_every_version_adds_a_group_by_the_partition_of_its_offsets(
    producer: NewProducer, group: str, version: int
) -> None:
    sender = producer().init()
    assert sender.add_offsets(group, version) == OK
    begun = sender.describe()
    assert begun.transaction_state == "Ongoing"
    assert [one.topic for one in begun.topics] == [OFFSETS_TOPIC]
    assert sender.end(ABORT) == OK


@pytest.mark.parametrize("version", range(5))
def test_offsets_are_committed_with_their_transaction(
    producer: NewProducer, group: str, topic: Topic, wire: Wire, version: int
) -> None:
    sender = producer().init()
    sender.add_offsets(group)
    assert sender.commit_offset(group, topic.name, 7, version) == OK
    assert offset_of(wire, group, topic.name) == NONE_YET
    assert sender.end(COMMIT) == OK
    waits_for_offset(wire, group, topic.name, 7)


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_an_aborted_transaction_are_dropped(
    producer: NewProducer, group: str, topic: Topic, wire: Wire, version: int
) -> None:
    commit(wire, group, topic.name, 3)
    sender = producer().init()
    sender.add_offsets(group)
    assert sender.commit_offset(group, topic.name, 7, version) == OK
    assert sender.end(ABORT) == OK
    waits_for_offset(wire, group, topic.name, 3)


def test_the_last_offset_of_a_transaction_is_committed(
    producer: NewProducer, group: str, topic: Topic, wire: Wire
) -> None:
    sender = producer().init()
    sender.add_offsets(group)
    for offset in (9, 4, 6):
        assert sender.commit_offset(group, topic.name, offset) == OK
    assert sender.end(COMMIT) == OK
    waits_for_offset(wire, group, topic.name, 6)


@pytest.mark.parametrize("version", range(5))
def test_offsets_outside_of_a_transaction_are_refused(
    producer: NewProducer, group: str, topic: Topic, wire: Wire, version: int
) -> None:
    sender = producer().init()
    refused = TRANSACTION_ABORTABLE if version >= 4 else INVALID_TXN_STATE
    assert sender.commit_offset(group, topic.name, 7, version) == refused
    assert sender.describe().transaction_state == "Empty"
    assert offset_of(wire, group, topic.name) == NONE_YET


def test_the_fifth_version_adds_the_group_itself(producer: NewProducer, group: str, topic: Topic, wire: Wire) -> None:
    sender = producer().init()
    for offset, committed in ((1, COMMIT), (2, ABORT), (3, COMMIT)):
        assert sender.commit_offset(group, topic.name, offset, 5) == OK
        assert [one.topic for one in sender.describe().topics] == [OFFSETS_TOPIC]
        assert sender.end(committed, 5) == OK
    assert sender.epoch == 3
    waits_for_offset(wire, group, topic.name, 3)


def test_unknown_partitions_are_refused(producer: NewProducer, group: str, topic: Topic) -> None:
    sender = producer().init()
    assert sender.commit_offset(group, "no-such-topic", version=5) == UNKNOWN_TOPIC_OR_PARTITION
    assert sender.commit_offset(group, topic.name, version=5, partition=9) == UNKNOWN_TOPIC_OR_PARTITION


def test_a_group_has_a_name(producer: NewProducer, topic: Topic) -> None:
    sender = producer().init()
    for version in (3, 5):
        assert sender.commit_offset("", topic.name, version=version) == INVALID_GROUP_ID


# ------------------------------------------------------------------------------------------------------------- KIP-447


@pytest.mark.parametrize("version", [8, 9])
def test_who_asks_for_stable_offsets_waits_for_the_transaction(
    producer: NewProducer, group: str, topic: Topic, wire: Wire, version: int
) -> None:
    commit(wire, group, topic.name, 3)
    sender = producer().init()
    sender.add_offsets(group)
    assert offset_of(wire, group, topic.name, require_stable=True, version=version) == (3, OK)
    sender.commit_offset(group, topic.name, 7)
    assert offset_of(wire, group, topic.name, require_stable=True, version=version) == (-1, UNSTABLE_OFFSET_COMMIT)
    assert offset_of(wire, group, topic.name, version=version) == (3, OK)
    sender.end(COMMIT)
    waits_for_offset(wire, group, topic.name, 7)


def test_an_offset_that_is_committed_beside_a_transaction_is_not_stable(
    producer: NewProducer, group: str, topic: Topic, wire: Wire
) -> None:
    sender = producer().init()
    sender.add_offsets(group)
    sender.commit_offset(group, topic.name, 7)
    assert commit(wire, group, topic.name, 4) == OK
    assert offset_of(wire, group, topic.name) == (4, OK)
    assert offset_of(wire, group, topic.name, require_stable=True) == (-1, UNSTABLE_OFFSET_COMMIT)
    sender.end(ABORT)
    waits_for_offset(wire, group, topic.name, 4)


def test_a_later_plain_commit_outlives_an_earlier_pending_one(
    producer: NewProducer, group: str, topic: Topic, wire: Wire
) -> None:
    sender = producer().init()
    sender.add_offsets(group)
    sender.commit_offset(group, topic.name, 7)
    assert commit(wire, group, topic.name, 9) == OK
    sender.end(COMMIT)
    waits_for_offset(wire, group, topic.name, 9)


def test_a_member_commits_in_its_generation_alone(
    producer: NewProducer, join: Callable[..., Member], topic: Topic, wire: Wire
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    sender = producer().init()
    sender.add_offsets(member.group)

    def committing(**who: Any) -> int:
        return sender.commit_offset(member.group, topic.name, 8, **who)

    assert committing(generation_id=member.generation, member_id=member.id) == OK
    assert committing(generation_id=member.generation + 1, member_id=member.id) == ILLEGAL_GENERATION
    assert committing(generation_id=member.generation - 1, member_id=member.id) == ILLEGAL_GENERATION
    assert committing(generation_id=member.generation, member_id="another") == UNKNOWN_MEMBER_ID
    assert committing(generation_id=member.generation, member_id="") == UNKNOWN_MEMBER_ID
    assert sender.end(COMMIT) == OK
    waits_for_offset(wire, member.group, topic.name, 8)


@pytest.mark.parametrize("version", range(5))
def test_who_says_nothing_of_a_member_is_not_fenced(
    producer: NewProducer, join: Callable[..., Member], topic: Topic, version: int
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    sender = producer().init()
    sender.add_offsets(member.group)
    assert sender.commit_offset(member.group, topic.name, 8, version) == OK
    assert sender.end(ABORT) == OK


def test_a_rebalance_fences_who_read_before_it(
    producer: NewProducer, join: Callable[..., Member], topic: Topic, wire: Wire
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    before = member.generation
    member.join()
    member.sync_alone()
    assert member.generation == before + 1
    sender = producer().init()
    sender.add_offsets(member.group)
    assert sender.commit_offset(member.group, topic.name, generation_id=before, member_id=member.id) == (
        ILLEGAL_GENERATION
    )
    assert sender.end(ABORT) == OK
    assert offset_of(wire, member.group, topic.name) == NONE_YET


def test_a_static_member_that_was_replaced_is_fenced(
    producer: NewProducer, join: Callable[..., Member], topic: Topic
) -> None:
    first = join(instance="i")
    first.join()
    first.sync_alone()
    second = join(instance="i")
    second.join()
    sender = producer().init()
    sender.add_offsets(first.group)
    for member, code in ((first, FENCED_INSTANCE_ID), (second, OK)):
        who: dict[str, Any] = {"generation_id": member.generation, "member_id": member.id, "group_instance_id": "i"}
        assert sender.commit_offset(member.group, topic.name, **who) == code
    assert sender.end(ABORT) == OK


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_member_of_a_group_that_is_not_there_is_refused(
    producer: NewProducer, nobody: str, topic: Topic, version: int
) -> None:
    sender = producer().init()
    sender.add_offsets(nobody)
    who: dict[str, Any] = {"generation_id": 3, "member_id": "m"}
    assert sender.commit_offset(nobody, topic.name, version=version, **who) == ILLEGAL_GENERATION
    assert sender.end(ABORT) == OK


@pytest.mark.parametrize("version", [3, 5])
def test_a_zombie_producer_commits_no_offsets(
    producer: NewProducer, group: str, topic: Topic, wire: Wire, version: int
) -> None:
    first, other = producer().init(), producer().init()
    heir = Transactional(first.wire, first.id).init()
    heir.add_offsets(group)
    assert heir.commit_offset(group, topic.name, 1) == OK
    assert first.commit_offset(group, topic.name, 7, version) == INVALID_PRODUCER_EPOCH
    foreign = first.commit_offset(group, topic.name, 7, version, producer_id=other.producer_id, epoch=0)
    assert foreign == INVALID_PRODUCER_ID_MAPPING
    assert heir.end(COMMIT) == OK
    waits_for_offset(wire, group, topic.name, 1)


def test_a_groups_offsets_and_records_are_one_transaction(
    producer: NewProducer, group: str, topic: Topic, wire: Wire
) -> None:
    """Consume, transform, produce: all of it or nothing."""
    sender = producer().init()
    for number, committed in enumerate((COMMIT, ABORT, COMMIT), 1):
        sender.write(topic.name, b"%d" % number, version=12)
        sender.commit_offset(group, topic.name, number, 5)
        assert sender.end(committed, 5) == OK
        waits_for_offset(wire, group, topic.name, number if committed else number - 1)


# ------------------------------------------------------------------------------------------------------------- KIP-848


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_member_of_the_consumer_protocol_commits_at_its_epoch(
    producer: NewProducer, wire: Wire, server: Server, topic: Topic, version: int
) -> None:
    """TxnOffsetCommit knows no STALE_MEMBER_EPOCH in any version."""
    name, member = coordinated(wire, server), str(uuid.uuid4())
    epoch = joined(wire, name, member, topic.name)
    sender = producer().init()
    sender.add_offsets(name)

    def committing(**who: Any) -> int:
        return sender.commit_offset(name, topic.name, 8, version, **who)

    assert committing(generation_id=epoch, member_id=member) == OK
    assert committing(generation_id=epoch + 1, member_id=member) == ILLEGAL_GENERATION
    assert committing(generation_id=epoch - 1, member_id=member) == ILLEGAL_GENERATION
    assert committing(generation_id=epoch, member_id="another") == UNKNOWN_MEMBER_ID
    assert committing() == OK
    assert sender.end(COMMIT) == OK
    waits_for_offset(wire, name, topic.name, 8)


def test_a_commit_at_an_older_epoch_is_taken_for_a_partition_that_the_member_has_kept(
    producer: NewProducer, wire: Wire, server: Server, topic: Topic, create: Callable[..., Topic]
) -> None:
    """KIP-1251: the answer with the newer epoch may be under way."""
    name, member = coordinated(wire, server), str(uuid.uuid4())
    create(f"{topic.name}-other")
    epoch = joined(wire, name, member, topic.name)
    topics = (topic.name, f"{topic.name}-other")
    wait_until(
        lambda: joined(wire, name, member, *topics, epoch=epoch) > epoch, within=60, what="the member has a newer epoch"
    )
    sender = producer().init()
    sender.add_offsets(name)
    assert sender.commit_offset(name, topic.name, 8, 5, generation_id=epoch, member_id=member) == OK
    assert sender.end(COMMIT) == OK


def joined(wire: Wire, group: str, member: str, *topics: str, epoch: int = 0) -> int:
    """Join a group of KIP-848 alone, or go on in it with other topics; returns the member's epoch."""
    first = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )
    wire.send_frame(header(68, 1, 848, flexible=True) + encode(first, 1))
    response, _ = decode(ConsumerGroupHeartbeatResponse, wire.read_frame(), 1, 5)
    assert response.error_code == OK, response
    return int(response.member_epoch)
