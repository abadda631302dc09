"""The checks of a request's member, which both types of groups use. Expected messages are Kafka's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pybroker.coordinator.group.errors import FencedInstanceIdError, FencedMemberEpochError, UnknownMemberIdError
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.modern.decision import Decision
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.member import Member
from pybroker.coordinator.group.reconciled.decision import GroupDecision
from pybroker.coordinator.group.reconciled.membership import check_epoch, find_or_replace
from pybroker.coordinator.group.streams.decision import StreamsDecision
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.member import StreamsMember
from pybroker.coordinator.group.streams.tasks import HeldTasks, Tasks

TOPIC = b"t" * 16


def consumer_group() -> GroupDecision[Any, Any]:
    member = Member("m", epoch=5, previous_epoch=4, instance_id="i", assigned={TOPIC: {0: 4, 1: 5}})
    return Decision(ConsumerGroup(GroupId("g"), members={"m": member}, targets={"m": {TOPIC: frozenset({0, 1})}}))


def streams_group() -> GroupDecision[Any, Any]:
    assigned = HeldTasks({"0": {0: 4, 1: 5}}, {}, {})
    member = StreamsMember("m", epoch=5, previous_epoch=4, instance_id="i", assigned=assigned)
    target = Tasks({"0": frozenset({0, 1})}, {}, {})
    return StreamsDecision(StreamsGroup(GroupId("g"), members={"m": member}, targets={"m": target}))


BOTH = pytest.mark.parametrize("build", [consumer_group, streams_group])
OWNED = {
    "consumer": ({TOPIC: frozenset({0})}, {TOPIC: frozenset({2})}),
    "streams": (Tasks({"0": frozenset({0})}, {}, {}), Tasks({"0": frozenset({2})}, {}, {})),
}
"""An assignment that the member has, and one that it has not."""


@BOTH
def test_a_member_in_its_epoch_and_a_joining_member_are_accepted(build: Callable[[], GroupDecision[Any, Any]]) -> None:
    group = build().group
    for epoch in (0, 5):
        check_epoch(group, group.member("m"), epoch, None)


@BOTH
def test_the_previous_epoch_is_accepted_with_assigned_partitions_only(
    build: Callable[[], GroupDecision[Any, Any]],
) -> None:
    group = build().group
    assigned, other = OWNED[group.type_name]
    check_epoch(group, group.member("m"), 4, assigned)
    for owned in (None, other):
        with pytest.raises(FencedMemberEpochError) as caught:
            check_epoch(group, group.member("m"), 4, owned)
        assert caught.value.message == (
            f"The {group.type_name} group member has a smaller member epoch (4) than the one known by the group "
            "coordinator (5). The member must abandon all its partitions and rejoin."
        )


@BOTH
def test_a_greater_epoch_is_fenced(build: Callable[[], GroupDecision[Any, Any]]) -> None:
    group = build().group
    with pytest.raises(FencedMemberEpochError, match="has a greater member epoch \\(6\\) than the one known"):
        check_epoch(group, group.member("m"), 6, OWNED[group.type_name][0])


@BOTH
def test_an_instance_id_belongs_to_one_member(build: Callable[[], GroupDecision[Any, Any]]) -> None:
    with pytest.raises(UnknownMemberIdError, match="Instance id x is unknown"):
        find_or_replace(build(), "m", "x", joins=False)
    with pytest.raises(FencedInstanceIdError, match="Static member n with instance id i was fenced by member m"):
        find_or_replace(build(), "n", "i", joins=False)


@BOTH
def test_a_static_member_that_has_left_is_replaced_with_its_target(
    build: Callable[[], GroupDecision[Any, Any]],
) -> None:
    decision = build()
    before = decision.group
    decision.group = type(before)(
        before.id, members={"m": type(before.member("m"))("m", epoch=-2, instance_id="i")}, targets=before.targets
    )
    member = find_or_replace(decision, "n", "i", joins=True)
    assert (member.member_id, member.epoch, member.instance_id) == ("n", 0, "i")
    assert list(decision.group.members) == ["n"]
    assert decision.group.targets == {"n": before.targets["m"]}
    assert {timer.key for timer in decision.timers} >= {("session", "g", "m"), ("revocation", "g", "m")}
