"""What a heartbeat of KIP-848 does and answers, and how it is refused, in Kafka's words."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from pybroker.coordinator.group import errors
from pybroker.coordinator.group.events import Client, ConsumerHeartbeat
from pybroker.coordinator.group.modern.member import MemberState
from pybroker.coordinator.group.reconciled.timers import revocation_key, session_key
from pybroker.coordinator.group.records import GroupRecord
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.simulation.consumer_world import SETTINGS, World

A, B = b"a" * 16, b"b" * 16


@pytest.fixture
def world() -> World:
    """A coordinator, and the topics a and b with three partitions each."""
    world = World(Random(0))
    world.topics = Topics({"a": TopicInfo(A, 3), "b": TopicInfo(B, 3)}, {A: "a", B: "b"}, 7)
    return world


def beat(world: World, member_id: str, epoch: int, *, version: int = 1, **reported: Any) -> Any:
    """Send a heartbeat that says what is given."""
    owned = reported.pop("owned", None)
    if owned is not None:
        reported["topic_partitions"] = [TopicPartitions(topic_id=t, partitions=sorted(ps)) for t, ps in owned.items()]
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **reported)
    return world.submit(ConsumerHeartbeat(request, version, Client("client", "/1.2.3.4"), "fresh"))


def join(world: World, member_id: str, **reported: Any) -> Any:
    """Join with topic a, unless something else is said."""
    first = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": ["a"], "owned": {}}
    return beat(world, member_id, 0, **{**first, **reported})


def partitions_of(reply: Any) -> dict[bytes, list[int]]:
    """The partitions of an answer."""
    return {topic.topic_id: topic.partitions for topic in reply.assignment.topic_partitions}


def test_the_first_member_is_given_everything_at_once(world: World) -> None:
    reply = join(world, "m1")
    assert (reply.member_id, reply.member_epoch, reply.heartbeat_interval_ms) == ("m1", 2, 5000)
    assert partitions_of(reply) == {A: [0, 1, 2]}


def test_its_records_are_kafkas_in_kafkas_order(world: World) -> None:
    join(world, "m1")
    assert [type(record.key).__name__ for record in world.records] == [
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupMetadataKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupCurrentMemberAssignmentKey",
    ]


def test_a_heartbeat_with_nothing_new_writes_nothing_and_returns_no_assignment(world: World) -> None:
    join(world, "m1")
    written = len(world.records)
    reply = beat(world, "m1", 2)
    assert (reply.member_epoch, reply.assignment, len(world.records)) == (2, None, written)


def test_a_heartbeat_that_says_everything_gets_the_whole_assignment(world: World) -> None:
    join(world, "m1")
    reply = beat(world, "m1", 2, rebalance_timeout_ms=1, subscribed_topic_names=["a"], owned={})
    assert partitions_of(reply) == {A: [0, 1, 2]}


def test_partitions_go_over_when_they_are_given_back_and_not_before(world: World) -> None:
    join(world, "m1")
    world.pass_time(1000)
    late = join(world, "m2")
    assert (late.member_epoch, partitions_of(late)) == (3, {})
    assert world.group.members["m2"].state is MemberState.UNRELEASED_PARTITIONS
    to_revoke = beat(world, "m1", 2)
    assert (to_revoke.member_epoch, partitions_of(to_revoke)) == (2, {A: [0, 1]})
    assert beat(world, "m2", 3).assignment is None
    given_back = beat(world, "m1", 2, owned={A: {0, 1}})
    assert given_back.member_epoch == 3
    assert partitions_of(beat(world, "m2", 3)) == {A: [2]}
    assert world.group.state_name == "Stable"


def test_members_that_come_within_the_assignment_interval_wait_for_it(world: World) -> None:
    join(world, "m1")
    world.pass_time(999)
    assert join(world, "m2").member_epoch == 2
    assert world.group.state_name == "Assigning"
    world.pass_time(1)
    beat(world, "m2", 2)
    assert world.group.state_name == "Reconciling"


def test_a_clock_that_was_set_back_puts_no_assignment_off(world: World) -> None:
    join(world, "m1")
    world.now -= 3_600_000
    assert join(world, "m2").member_epoch == 3


def test_a_member_that_does_not_give_back_in_time_is_fenced(world: World) -> None:
    join(world, "m1")
    world.pass_time(1000)
    join(world, "m2")
    beat(world, "m1", 2)
    assert world.timers[revocation_key("g", "m1")].deadline_ms == world.now + 10_000
    world.pass_time(10_000)
    assert set(world.group.members) == {"m2"}
    with pytest.raises(errors.UnknownMemberIdError, match=r"Member m1 is not a member of group g\."):
        beat(world, "m1", 2)


def test_a_silent_member_is_fenced_after_its_session(world: World) -> None:
    join(world, "m1")
    assert world.timers[session_key("g", "m1")].deadline_ms == world.now + 45_000
    world.pass_time(45_000)
    assert world.group.is_empty
    assert not world.timers


def test_a_lost_answer_is_sent_again_while_the_member_has_no_more_than_it_may(world: World) -> None:
    join(world, "m1")
    world.pass_time(1000)
    beat(world, "m1", 2, subscribed_topic_names=["a", "b"])
    reply = beat(world, "m1", 2, rebalance_timeout_ms=1, subscribed_topic_names=["a", "b"], owned={A: {0, 1, 2}})
    assert (reply.member_epoch, partitions_of(reply)) == (3, {A: [0, 1, 2], B: [0, 1, 2]})
    with pytest.raises(
        errors.FencedMemberEpochError, match=r"has a smaller member epoch \(2\) than the one known .*\(3\)"
    ):
        beat(world, "m1", 2)


def test_a_member_from_the_future_is_fenced(world: World) -> None:
    join(world, "m1")
    with pytest.raises(
        errors.FencedMemberEpochError, match=r"has a greater member epoch \(9\) than the one known .*\(2\)"
    ):
        beat(world, "m1", 9)


def test_a_topic_that_grows_raises_the_epoch_at_the_next_heartbeat(world: World) -> None:
    join(world, "m1")
    world.pass_time(1000)
    world.topics = Topics({"a": TopicInfo(A, 4)}, {A: "a"}, 7)
    assert partitions_of(beat(world, "m1", 2)) == {A: [0, 1, 2, 3]}
    assert world.group.epoch == 3


def test_a_pattern_is_resolved_in_the_heartbeat_that_brings_it(world: World) -> None:
    reply = join(world, "m1", subscribed_topic_names=None, subscribed_topic_regex="[ab]")
    assert partitions_of(reply) == {A: [0, 1, 2], B: [0, 1, 2]}
    assert world.group.regexes["[ab]"].version == 7


def test_a_new_topic_joins_a_pattern_when_the_pause_is_over(world: World) -> None:
    join(world, "m1", subscribed_topic_names=None, subscribed_topic_regex="a.*")
    c = b"c" * 16
    world.topics = Topics({**world.topics.by_name, "ac": TopicInfo(c, 1)}, {**world.topics.name_by_id, c: "ac"}, 8)
    assert beat(world, "m1", 2).assignment is None
    world.pass_time(10_001)
    assert partitions_of(beat(world, "m1", 2)) == {A: [0, 1, 2], c: [0]}


def test_a_heartbeat_looks_few_of_many_patterns_up_anew_and_the_next_ones_the_others(world: World) -> None:
    epochs = {}
    for number in range(10):
        member = f"m{number}"
        epochs[member] = join(
            world, member, subscribed_topic_names=None, subscribed_topic_regex=f"a.*|{number}"
        ).member_epoch
    c = b"c" * 16
    world.topics = Topics({**world.topics.by_name, "ac": TopicInfo(c, 1)}, {**world.topics.name_by_id, c: "ac"}, 8)
    world.pass_time(10_001)
    looked_up = []
    for number in range(4):
        beat(world, f"m{number}", epochs[f"m{number}"])
        looked_up.append(sum(regex.version == 8 for regex in world.group.regexes.values()))
    assert looked_up == [4, 8, 10, 10]
    world.topics = Topics(world.topics.by_name, world.topics.name_by_id, 9)
    world.now -= 3_600_000
    for number in range(3):
        beat(world, f"m{number}", world.group.members[f"m{number}"].epoch)
    assert {regex.version for regex in world.group.regexes.values()} == {9}, "also where the clock was set back"


def test_a_clock_that_was_set_back_does_not_keep_a_new_topic_from_a_pattern(world: World) -> None:
    join(world, "m1", subscribed_topic_names=None, subscribed_topic_regex="a.*")
    c = b"c" * 16
    world.topics = Topics({**world.topics.by_name, "ac": TopicInfo(c, 1)}, {**world.topics.name_by_id, c: "ac"}, 8)
    world.now -= 3_600_000
    assert partitions_of(beat(world, "m1", 2)) == {A: [0, 1, 2], c: [0]}


def test_the_last_member_takes_its_pattern_along(world: World) -> None:
    join(world, "m1", subscribed_topic_names=None, subscribed_topic_regex="a")
    beat(world, "m1", -1)
    assert world.group.regexes == {}
    assert world.group.is_empty


def test_a_text_that_is_no_pattern_is_refused(world: World) -> None:
    fault = r"SubscribedTopicRegex `\(` is not a valid regular expression: missing closing \)\."
    with pytest.raises(errors.InvalidRegularExpressionError, match=fault):
        join(world, "m1", subscribed_topic_names=None, subscribed_topic_regex="(")
    assert world.records == []


def test_what_a_static_member_has_waits_for_it(world: World) -> None:
    join(world, "m1", instance_id="i")
    away = beat(world, "m1", -2, instance_id="i")
    assert (away.member_id, away.member_epoch) == ("m1", -2)
    back = join(world, "m2", instance_id="i")
    assert (back.member_epoch, partitions_of(back)) == (2, {A: [0, 1, 2]})
    assert set(world.group.members) == {"m2"}


def test_a_static_member_that_is_still_there_keeps_its_name(world: World) -> None:
    join(world, "m1", instance_id="i")
    with pytest.raises(errors.UnreleasedInstanceIdError, match=r"the instance id is owned by m1 member\."):
        join(world, "m2", instance_id="i")


def test_a_static_member_that_was_replaced_is_fenced(world: World) -> None:
    join(world, "m1", instance_id="i")
    beat(world, "m1", -2, instance_id="i")
    join(world, "m2", instance_id="i")
    with pytest.raises(errors.FencedInstanceIdError, match=r"m1 with instance id i was fenced by member m2\."):
        beat(world, "m1", 2, instance_id="i")
    with pytest.raises(errors.UnknownMemberIdError, match=r"Instance id j is unknown\."):
        beat(world, "m2", 2, instance_id="j")


def test_a_static_member_that_does_not_come_back_is_out_when_its_session_ends(world: World) -> None:
    join(world, "m1", instance_id="i")
    beat(world, "m1", -2, instance_id="i")
    world.pass_time(45_000)
    assert world.group.is_empty


def test_a_full_group_takes_nobody_in(world: World) -> None:
    full = msgspec.structs.replace(SETTINGS, consumer=msgspec.structs.replace(SETTINGS.consumer, max_size=1))
    world.machine.state.settings = full
    join(world, "m1")
    with pytest.raises(errors.GroupMaxSizeReachedError, match=r"has reached its maximum capacity of 1 members\."):
        join(world, "m2")
    assert join(world, "m1").member_epoch == 2


def test_a_member_of_version_0_is_given_an_id(world: World) -> None:
    assert join(world, "", version=0).member_id == "fresh"


@pytest.mark.parametrize(
    ("reported", "fault"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"instance_id": " "}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": {A: {0}}}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(world: World, reported: dict[str, Any], fault: str) -> None:
    with pytest.raises(errors.InvalidRequestError) as raised:
        join(world, **{"member_id": "m1", **reported})
    assert raised.value.message == fault


@pytest.mark.parametrize(("epoch", "fault"), [(-2, "InstanceId can't be null."), (-3, "MemberEpoch is invalid.")])
def test_an_epoch_that_means_nothing_is_refused(world: World, epoch: int, fault: str) -> None:
    with pytest.raises(errors.InvalidRequestError) as raised:
        beat(world, "m1", epoch)
    assert raised.value.message == fault


def test_an_assignor_that_the_broker_lacks_is_refused(world: World) -> None:
    with pytest.raises(errors.UnsupportedAssignorError) as raised:
        join(world, "m1", server_assignor="magic")
    assert raised.value.message == "ServerAssignor magic is not supported. Supported assignors: uniform, range."


def test_a_member_of_no_group_gets_group_id_not_found(world: World) -> None:
    with pytest.raises(errors.GroupIdNotFoundError, match=r"Consumer group g not found\."):
        beat(world, "m1", 2)
    with pytest.raises(errors.GroupIdNotFoundError, match=r"Group g not found\."):
        beat(world, "m1", -1)


def test_a_refused_heartbeat_changes_nothing(world: World) -> None:
    join(world, "m1")
    before, written = world.group, list(world.records)
    with pytest.raises(errors.FencedMemberEpochError):
        beat(world, "m1", 9)
    assert (world.group, world.records) == (before, written)
    assert all(isinstance(record, GroupRecord) for record in written)
