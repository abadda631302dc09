"""Members of classic groups in raw frames: what joining, syncing and leaving is answered with.

Claims hold of Apache Kafka 4.3 as well (`PYBROKER_CONFORMANCE_PEER=kafka`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.classic_members import (
    FENCED_INSTANCE_ID,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    OK,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    Member,
)
from tests.conformance.conftest import Server, Topic, coordinated, serving
from tests.support.conditions import wait_until
from tests.support.wire import Wire

UNKNOWN_SERVER_ERROR = -1


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins_and_the_first_member_leads(join: Callable[..., Member], version: int) -> None:
    member = join()
    response = member.join(version)
    assert (response.error_code, response.generation_id, response.protocol_name) == (OK, 1, "range")
    assert response.leader == response.member_id == member.id
    assert [(one.member_id, bytes(one.metadata)) for one in response.members] == [(member.id, b"meta")]
    assert member.id.startswith("wire-")


@pytest.mark.parametrize("version", range(6))
def test_every_version_syncs(join: Callable[..., Member], version: int) -> None:
    member = join()
    member.join()
    response = member.sync_alone(version)
    assert (response.error_code, bytes(response.assignment)) == (OK, b"all")
    assert member.beat() == OK


@pytest.mark.parametrize("version", range(4, 10))
def test_a_new_dynamic_member_is_given_an_id_first(join: Callable[..., Member], version: int) -> None:
    member = join()
    member.begin_join(version)
    response = member.end_join()
    assert (response.error_code, response.generation_id, response.members) == (MEMBER_ID_REQUIRED, -1, [])
    assert response.member_id.startswith("wire-")


def test_a_second_member_makes_the_first_join_again(join: Callable[..., Member]) -> None:
    first, second = join(protocols={"range": b"1"}), join(protocols={"range": b"2"})
    first.join()
    first.sync_alone()
    second.begin_join()
    second.id = second.end_join().member_id
    second.begin_join()
    wait_until(lambda: first.beat() == REBALANCE_IN_PROGRESS, within=60, what="the rebalance begins")
    first.begin_join()
    responses = {member.id: member.end_join() for member in (first, second)}
    assert {response.generation_id for response in responses.values()} == {2}
    assert {response.leader for response in responses.values()} == {first.id}
    assert {one.member_id for one in responses[first.id].members} == {first.id, second.id}
    assert responses[second.id].members == []
    requested = second.sync_request()
    correlation = second.wire.send(requested)
    assert bytes(first.sync(5, **{first.id: b"a", second.id: b"b"}).assignment) == b"a"
    assert bytes(second.wire.receive(requested, correlation).assignment) == b"b"


def test_the_protocol_that_most_members_prefer_among_the_common_ones_is_chosen(join: Callable[..., Member]) -> None:
    first = join(protocols={"range": b"", "sticky": b"", "own": b""})
    second = join(protocols={"sticky": b"", "range": b""})
    third = join(protocols={"sticky": b"", "range": b""})
    first.join()
    for member in (second, third):
        member.begin_join()
        member.id = member.end_join().member_id
        member.begin_join()
    wait_until(lambda: first.beat() == REBALANCE_IN_PROGRESS, within=60, what="the rebalance begins")
    first.begin_join()
    assert {member.end_join().protocol_name for member in (first, second, third)} == {"sticky"}


def test_a_member_without_a_common_protocol_or_of_another_kind_is_refused(join: Callable[..., Member]) -> None:
    join().join()
    for other in (join(protocols={"other": b""}), join(kind="consumer"), join(protocols={})):
        other.begin_join()
        assert other.end_join().error_code == INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"session_ms": 5_999}, INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, INVALID_SESSION_TIMEOUT),
        ({"id": "stranger"}, UNKNOWN_MEMBER_ID),
        ({"protocols": {}}, INCONSISTENT_GROUP_PROTOCOL),
        ({"kind": ""}, INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_wrong_join_is_refused(join: Callable[..., Member], settings: dict[str, Any], code: int) -> None:
    member = join(**settings)
    member.begin_join()
    assert member.end_join().error_code == code


@pytest.mark.parametrize("version", [6, 7, 9])
@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({}, MEMBER_ID_REQUIRED),
        ({"session_ms": 1}, INVALID_SESSION_TIMEOUT),
        ({"id": "stranger"}, UNKNOWN_MEMBER_ID),
        ({"group": ""}, INVALID_GROUP_ID),
        ({"kind": ""}, INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_refusal_names_no_protocol(
    server: Server, group: str, settings: dict[str, Any], code: int, version: int
) -> None:
    member = Member(server, **{"group": group, **settings})
    with member.wire:
        member.begin_join(version)
        response = member.end_join()
    assert (response.error_code, response.protocol_name) == (code, None if version >= 7 else "")


def test_a_member_that_is_sent_away_while_it_joins_is_told_of_no_protocol(join: Callable[..., Member]) -> None:
    first, second = join(), join()
    first.join()
    first.sync_alone()
    second.begin_join()
    second.id = second.end_join().member_id
    second.begin_join()
    wait_until(lambda: first.beat() == REBALANCE_IN_PROGRESS, within=60, what="the rebalance begins")
    with Wire(second.server.bootstrap_servers) as other:
        who = {"member_id": second.id, "group_instance_id": None}
        other.call("LeaveGroup", 4, group_id=second.group, members=[who])
    response = second.end_join()
    assert (response.error_code, response.protocol_name) == (UNKNOWN_MEMBER_ID, None)


def test_an_assignment_that_is_too_large_is_an_error_of_all_and_the_group_rebalances(
    join: Callable[..., Member],
) -> None:
    first, second = join(), join()
    first.join()
    first.sync_alone()
    second.begin_join()
    second.id = second.end_join().member_id
    second.begin_join()
    wait_until(lambda: first.beat() == REBALANCE_IN_PROGRESS, within=60, what="the rebalance begins")
    first.begin_join()
    first.end_join()
    second.end_join()
    requested = second.sync_request()
    correlation = second.wire.send(requested)
    refused = first.sync(5, **{first.id: b"x" * 2_000_000})
    assert (refused.error_code, refused.assignment) == (UNKNOWN_SERVER_ERROR, b"")
    assert second.wire.receive(requested, correlation).error_code == UNKNOWN_SERVER_ERROR
    assert first.beat() == REBALANCE_IN_PROGRESS
    for member in (first, second):
        member.begin_join()
    assert {member.end_join().generation_id for member in (first, second)} == {3}
    assert bytes(first.sync_alone().assignment) == b"all"


def test_the_empty_group_id_is_invalid(server: Server, wire: Wire, group: str) -> None:
    member = Member(server, "")
    with member.wire:
        member.begin_join()
        assert member.end_join().error_code == INVALID_GROUP_ID
        assert member.sync_alone().error_code == INVALID_GROUP_ID
        assert member.beat() == INVALID_GROUP_ID
        assert member.leave().error_code == INVALID_GROUP_ID
    assert wire.call("OffsetDelete", 0, group_id="", topics=[]).error_code == INVALID_GROUP_ID


def test_stale_generations_and_unknown_members_are_distinguished(join: Callable[..., Member], topic: Topic) -> None:
    member = join()
    member.join()
    member.sync_alone()
    assert member.beat(generation=7) == ILLEGAL_GENERATION
    assert member.commit(topic.name, generation=7) == ILLEGAL_GENERATION
    stranger = join(id="stranger", generation=1)
    assert stranger.beat() == UNKNOWN_MEMBER_ID
    assert stranger.commit(topic.name) == UNKNOWN_MEMBER_ID
    assert stranger.sync_alone().error_code == UNKNOWN_MEMBER_ID
    assert stranger.leave().members[0].error_code == UNKNOWN_MEMBER_ID
    assert stranger.leave(2).error_code == UNKNOWN_MEMBER_ID
    member.generation = 7
    assert member.sync_alone().error_code == ILLEGAL_GENERATION


def test_an_unknown_group_has_no_members(join: Callable[..., Member], topic: Topic) -> None:
    stranger = join(id="stranger", generation=1)
    assert stranger.beat() == UNKNOWN_MEMBER_ID
    assert stranger.sync_alone().error_code == UNKNOWN_MEMBER_ID
    left = stranger.leave()
    assert (left.error_code, [one.error_code for one in left.members]) == (OK, [UNKNOWN_MEMBER_ID])
    assert stranger.leave(1).error_code == UNKNOWN_MEMBER_ID
    assert stranger.commit(topic.name, version=8) == ILLEGAL_GENERATION
    assert stranger.commit(topic.name, version=9) == GROUP_ID_NOT_FOUND


def test_nobody_commits_until_the_leader_has_assigned(join: Callable[..., Member], topic: Topic) -> None:
    member = join()
    member.join()
    assert member.commit(topic.name) == REBALANCE_IN_PROGRESS
    member.sync_alone()
    assert member.commit(topic.name) == OK


def test_protocol_type_and_name_have_to_be_the_groups(join: Callable[..., Member]) -> None:
    member = join()
    member.join()
    member.kind = "other"
    assert member.sync_alone().error_code == INCONSISTENT_GROUP_PROTOCOL
    response = member.wire.call(
        "SyncGroup",
        5,
        group_id=member.group,
        generation_id=1,
        member_id=member.id,
        protocol_type=None,
        protocol_name=None,
        assignments=[],
    )
    assert response.error_code == INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(6))
def test_every_version_leaves(join: Callable[..., Member], wire: Wire, version: int) -> None:
    member = join()
    member.join()
    member.sync_alone()
    response = member.leave(version)
    assert response.error_code == OK
    assert version < 3 or [one.error_code for one in response.members] == [OK]
    (described,) = wire.call("DescribeGroups", 5, groups=[member.group]).groups
    assert (described.group_state, described.members) == ("Empty", [])


def test_a_static_member_takes_its_place_again_without_a_rebalance(join: Callable[..., Member], topic: Topic) -> None:
    before = join(instance="i1")
    before.join()
    before.sync_alone()
    again = join(instance="i1")
    response = again.join()
    assert (response.error_code, response.generation_id, response.skip_assignment) == (OK, 1, True)
    assert response.member_id == response.leader != before.id
    assert bytes(again.sync().assignment) == b"all"
    assert before.beat() == FENCED_INSTANCE_ID
    assert again.beat() == OK
    assert before.sync().error_code == FENCED_INSTANCE_ID
    before.begin_join()
    assert before.end_join().error_code == FENCED_INSTANCE_ID
    older = join(instance="i1")
    response = older.join(8)
    assert (response.error_code, response.leader, response.members) == (OK, again.id, [])


def test_a_static_member_is_sent_away_by_its_instance_id(join: Callable[..., Member], wire: Wire) -> None:
    member = join(instance="i1")
    member.join()
    member.sync_alone()
    unknown = {"member_id": "", "group_instance_id": "i9"}
    fenced = {"member_id": "other", "group_instance_id": "i1"}
    known = {"member_id": "", "group_instance_id": "i1"}
    response = wire.call("LeaveGroup", 5, group_id=member.group, members=[unknown, fenced, known])
    assert [one.error_code for one in response.members] == [UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, OK]


def test_a_group_takes_no_more_members_than_group_max_size() -> None:
    with serving({"group.max.size": "1"}) as small, Wire(small.bootstrap_servers) as wire:
        group = coordinated(wire, small)
        first, second = Member(small, group), Member(small, group)
        with first.wire, second.wire:
            first.join()
            first.sync_alone()
            second.begin_join()
            assert second.end_join().error_code == GROUP_MAX_SIZE_REACHED
            assert first.beat() == OK
