"""Committed offsets of classic groups in raw frames: what is answered, and with which code.

Claims hold of Apache Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.classic_members import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    NON_EMPTY_GROUP,
    OFFSET_METADATA_TOO_LARGE,
    OK,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Member,
    commit,
    committed,
)
from tests.conformance.conftest import Topic
from tests.support.conditions import wait_until
from tests.support.wire import Wire

pytestmark = pytest.mark.one_and_three


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_commits_from_outside_of_the_group(wire: Wire, group: str, topic: Topic, version: int) -> None:
    assert commit(wire, group, topic.name, 100 + version, version=version, metadata="kept") == OK
    assert committed(wire, group, topic.name) == (100 + version, "kept", OK)


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version_fetches(wire: Wire, group: str, topic: Topic, version: int) -> None:
    assert committed(wire, group, topic.name, version=version) == (-1, "", OK)
    commit(wire, group, topic.name, 7, metadata="kept")
    assert committed(wire, group, topic.name, version=version) == (7, "kept", OK)


def test_topics_are_named_by_id_in_version_10(wire: Wire, group: str, topic: Topic) -> None:
    assert commit(wire, group, "", 7, version=10, topic_id=topic.id) == OK
    assert committed(wire, group, "", version=10, topic_id=topic.id) == (7, "", OK)
    assert committed(wire, group, topic.name) == (7, "", OK)
    unknown = uuid.uuid4()
    assert commit(wire, group, "", 7, version=10, topic_id=unknown) == UNKNOWN_TOPIC_ID
    assert committed(wire, group, "", version=10, topic_id=unknown) == (-1, "", UNKNOWN_TOPIC_ID)
    everything = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}
    (response,) = wire.call("OffsetFetch", 10, groups=[everything], require_stable=True).groups
    assert [(one.topic_id, one.partitions[0].committed_offset) for one in response.topics] == [(topic.id, 7)]


def test_unknown_topics_and_partitions_fail_by_themselves(wire: Wire, group: str, topic: Topic) -> None:
    assert commit(wire, group, "no-such-topic") == UNKNOWN_TOPIC_OR_PARTITION
    parts = [
        {"partition_index": index, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
        for index in (0, 9)
    ]
    response = wire.call(
        "OffsetCommit",
        8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": "no-such-topic", "partitions": parts[:1]}, {"name": topic.name, "partitions": parts}],
    )
    codes = {(one.name, part.partition_index): part.error_code for one in response.topics for part in one.partitions}
    assert codes == {
        ("no-such-topic", 0): UNKNOWN_TOPIC_OR_PARTITION,
        (topic.name, 0): OK,
        (topic.name, 9): UNKNOWN_TOPIC_OR_PARTITION,
    }


def responses_of(response: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    """The topics of an answer, each with its partitions' codes."""
    return [(one.name, [(part.partition_index, part.error_code) for part in one.partitions]) for one in response.topics]


def commit_many(
    wire: Wire, group: str, *topics: tuple[str, list[int]], generation: int = -1, member: str = ""
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Commit an offset in each of these partitions."""
    part = {"committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
    requested = [
        {"name": name, "partitions": [{"partition_index": it, **part} for it in those]} for name, those in topics
    ]
    response = wire.call(
        "OffsetCommit", 8, group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=requested
    )
    return responses_of(response)


def test_what_does_not_exist_is_answered_beside_a_refusal_of_the_member(wire: Wire, group: str, topic: Topic) -> None:
    requested = (topic.name, [0, 9]), ("no-such-topic", [0])
    assert commit_many(wire, group, *requested, generation=5, member="nobody") == [
        (topic.name, [(9, UNKNOWN_TOPIC_OR_PARTITION), (0, ILLEGAL_GENERATION)]),
        ("no-such-topic", [(0, UNKNOWN_TOPIC_OR_PARTITION)]),
    ]


def test_a_topic_that_is_named_twice_has_all_of_its_answers(wire: Wire, group: str, topic: Topic) -> None:
    unknown = UNKNOWN_TOPIC_OR_PARTITION
    assert commit_many(wire, group, ("no-such-topic", [0]), ("no-such-topic", [1])) == [
        ("no-such-topic", [(0, unknown), (1, unknown)])
    ]
    assert commit_many(wire, group, (topic.name, [9]), (topic.name, [0]), (topic.name, [8])) == [
        (topic.name, [(9, unknown), (8, unknown), (0, OK)])
    ]

    def deleted(*topics: tuple[str, list[int]]) -> list[tuple[str, list[tuple[int, int]]]]:
        requested = [{"name": name, "partitions": [{"partition_index": it} for it in those]} for name, those in topics]
        return responses_of(wire.call("OffsetDelete", 0, group_id=group, topics=requested))

    assert deleted((topic.name, [9]), (topic.name, [0]), (topic.name, [8])) == [
        (topic.name, [(9, unknown), (8, unknown), (0, OK)])
    ]
    assert deleted(("no-such-topic", []), (topic.name, [])) == [("no-such-topic", [])]


def test_a_topic_without_partitions_is_answered_only_where_it_is_unknown(wire: Wire, group: str, topic: Topic) -> None:
    assert commit_many(wire, group, (topic.name, [])) == []
    assert commit_many(wire, group, (topic.name, []), ("no-such-topic", [])) == [("no-such-topic", [])]
    assert commit_many(wire, group, (topic.name, []), (topic.name, [0])) == [(topic.name, [(0, OK)])]


def test_metadata_is_measured_in_units_of_utf_16(wire: Wire, group: str, topic: Topic) -> None:
    assert commit(wire, group, topic.name, metadata="\U0001f600" * 2048) == OK
    assert commit(wire, group, topic.name, metadata="\U0001f600" * 2049) == OFFSET_METADATA_TOO_LARGE
    assert commit(wire, group, topic.name, metadata="\u20ac" * 4096) == OK
    assert commit(wire, group, topic.name, metadata="\u20ac" * 4097) == OFFSET_METADATA_TOO_LARGE


def test_too_much_metadata_is_refused(wire: Wire, group: str, topic: Topic) -> None:
    assert commit(wire, group, topic.name, metadata="m" * 4096) == OK
    assert commit(wire, group, topic.name, metadata="m" * 4097) == OFFSET_METADATA_TOO_LARGE
    assert committed(wire, group, topic.name)[1] == "m" * 4096


def test_who_is_outside_does_not_commit_while_there_are_members(
    join: Callable[..., Member], wire: Wire, topic: Topic
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    assert commit(wire, member.group, topic.name) == UNKNOWN_MEMBER_ID
    member.leave()
    assert commit(wire, member.group, topic.name) == OK


def test_many_groups_are_fetched_at_once(wire: Wire, group: str, nobody: str, topic: Topic) -> None:
    commit(wire, group, topic.name, 3)
    wanted = [
        {"group_id": name, "topics": [{"name": topic.name, "partition_indexes": [0]}]} for name in (group, nobody)
    ]
    response = wire.call("OffsetFetch", 8, groups=wanted, require_stable=False)
    found = {one.group_id: one.topics[0].partitions[0].committed_offset for one in response.groups}
    assert found == {group: 3, nobody: -1}


def test_offsets_are_deleted_unless_a_member_is_subscribed(
    join: Callable[..., Member], wire: Wire, topic: Topic
) -> None:
    name = join().group
    wanted = [{"name": topic.name, "partitions": [{"partition_index": 0}, {"partition_index": 9}]}]
    assert wire.call("OffsetDelete", 0, group_id=name, topics=wanted).error_code == GROUP_ID_NOT_FOUND
    commit(wire, name, topic.name)
    response = wire.call("OffsetDelete", 0, group_id=name, topics=wanted)
    codes = {part.partition_index: part.error_code for part in response.topics[0].partitions}
    assert (response.error_code, codes) == (OK, {0: OK, 9: UNKNOWN_TOPIC_OR_PARTITION})
    assert committed(wire, name, topic.name)[0] == -1


def test_offsets_of_a_group_that_is_no_consumer_are_not_deleted(
    join: Callable[..., Member], wire: Wire, topic: Topic
) -> None:
    member = join()
    member.join()
    member.sync_alone()
    wanted = [{"name": topic.name, "partitions": [{"partition_index": 0}]}]
    assert wire.call("OffsetDelete", 0, group_id=member.group, topics=wanted).error_code == NON_EMPTY_GROUP


def test_a_subscribed_topic_keeps_its_offsets(
    join: Callable[..., Member], wire: Wire, create: Callable[..., Topic], topic_name: str
) -> None:
    topic = create(topic_name)
    subscription = b"\0\0\0\0\0\1" + len(topic.name).to_bytes(2) + topic.name.encode() + b"\xff\xff\xff\xff"
    member = join(kind="consumer", protocols={"range": subscription})
    member.join()
    member.sync_alone()
    assert member.commit(topic.name) == OK
    wanted = [{"name": topic.name, "partitions": [{"partition_index": 0}]}]
    response = wire.call("OffsetDelete", 0, group_id=member.group, topics=wanted)
    assert response.topics[0].partitions[0].error_code == GROUP_SUBSCRIBED_TO_TOPIC


def test_a_deleted_topics_offsets_are_forgotten(wire: Wire, group: str, topic: Topic) -> None:
    commit(wire, group, topic.name, 7)
    wire.call("DeleteTopics", 5, topic_names=[topic.name], timeout_ms=10_000)
    wait_until(lambda: committed(wire, group, topic.name)[0] == -1, within=60, what="the offset is forgotten")
