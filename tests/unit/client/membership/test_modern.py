"""A member of a group of KIP-848: every pair of state and trigger, what heartbeats say, and reconciliation."""

from __future__ import annotations

import itertools
from copy import copy
from typing import Any

import pytest

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.events import CommitRefused, Left, Polled
from pybroker.client.membership.heartbeat_events import HeartbeatCompleted, HeartbeatLost, HeartbeatSent, Stalled
from pybroker.client.membership.heartbeat_member import TRANSITIONS, MemberRules, MembershipState, MembershipTrigger
from pybroker.client.membership.modern import ModernMember
from pybroker.client.membership.modern_events import GroupSubscription, IdGiven, StepDone, Subscribed
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.machine.transitions import TransitionError, Transitions
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

TOPIC, OTHER = b"t" * 16, b"u" * 16
NAMES = {TOPIC: "t"}
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def member(instance_id: str | None = None) -> ModernMember:
    one = ModernMember(MemberRules(group_id="g", instance_id=instance_id, max_poll_interval_s=300), "m")
    drive(one, Subscribed(GroupSubscription(topics=("t",))))
    return one


def drive(one: ModernMember, event: Any, now: float = 0) -> Remedy:
    """Decide and apply, and see that the decision alone changes nothing."""
    before = copy(one.membership)
    outcome = one.handle(event, now)
    assert one.membership == before
    one.apply(outcome.membership)
    return outcome.remedy


def respond(epoch: int, *partitions: int | None, topic: bytes = TOPIC, code: int = 0) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if partitions != (None,):
        assigned = [TopicPartitions(topic_id=topic, partitions=[p for p in partitions if p is not None])]
        assignment = Assignment(topic_partitions=assigned)
    return ConsumerGroupHeartbeatResponse(
        error_code=code, member_epoch=epoch, heartbeat_interval_ms=5000, assignment=assignment
    )


def beat(one: ModernMember, reply: ConsumerGroupHeartbeatResponse, now: float = 0) -> ConsumerGroupHeartbeatRequest:
    request = one.build_heartbeat()
    drive(one, HeartbeatSent(request), now)
    drive(one, HeartbeatCompleted(request.member_epoch, reply), now)
    return request


def take_step(one: ModernMember) -> RebalanceStep:
    step = one.rebalance_step(NAMES)
    assert step is not None
    drive(one, StepDone(step, NAMES))
    return step


def stable(*partitions: int) -> ModernMember:
    """A member of epoch 1 that has these partitions and has said so."""
    one = member()
    beat(one, respond(1, *partitions))
    if partitions:
        take_step(one)
        beat(one, respond(1, None))
    assert one.state is MembershipState.STABLE
    return one


def test_what_the_table_does_not_list_raises() -> None:
    table = Transitions("ModernMember", MembershipState.UNSUBSCRIBED, TRANSITIONS)
    for state, trigger in itertools.product(MembershipState, MembershipTrigger):
        if (state, trigger) in TRANSITIONS:
            assert table.following(state, trigger) is TRANSITIONS[state, trigger]
        else:
            with pytest.raises(TransitionError):
                table.following(state, trigger)
    assert table.unreachable() == []


def test_joining_sends_everything_and_later_heartbeats_only_what_changed() -> None:
    one = member()
    first = beat(one, respond(1, 0))
    assert (first.member_epoch, first.subscribed_topic_names, first.topic_partitions) == (0, ["t"], [])
    assert first.rebalance_timeout_ms == 300_000
    assert take_step(one) == RebalanceStep(assigned=frozenset({A}))
    second = beat(one, respond(1, None))
    assert (second.member_epoch, second.subscribed_topic_names) == (1, None)
    assert second.topic_partitions == [TopicPartitions(topic_id=TOPIC, partitions=[0])]
    third = beat(one, respond(1, None))
    assert (third.topic_partitions, third.rebalance_timeout_ms) == (None, -1)


def test_an_empty_assignment_needs_no_turn() -> None:
    one = member()
    beat(one, respond(1))
    assert (one.state, one.rebalance_step(NAMES)) == (MembershipState.STABLE, None)


def test_a_smaller_target_is_given_back_and_acknowledged_at_once() -> None:
    one = stable(0, 1)
    beat(one, respond(2, 1), now=10)
    assert take_step(one) == RebalanceStep(revoked=frozenset({A}), assigned=frozenset())
    assert (one.state, one.heartbeat_at()) == (MembershipState.ACKNOWLEDGING, 0)
    assert beat(one, respond(3, None)).topic_partitions == [TopicPartitions(topic_id=TOPIC, partitions=[1])]
    assert one.state is MembershipState.STABLE


def test_a_topic_without_a_name_waits_for_it() -> None:
    one = member()
    beat(one, respond(1, 0, topic=OTHER))
    assert (one.state, one.rebalance_step(NAMES)) == (MembershipState.RECONCILING, None)
    assert one.rebalance_step({OTHER: "u"}) == RebalanceStep(assigned=frozenset({TopicPartition("u", 0)}))


def test_a_target_that_comes_while_one_is_taken_follows_it() -> None:
    one = member()
    beat(one, respond(1, 0))
    step = one.rebalance_step(NAMES)
    assert step is not None
    beat(one, respond(2, 0, 1))
    drive(one, StepDone(step, NAMES))
    assert one.state is MembershipState.ACKNOWLEDGING
    beat(one, respond(2, None))
    assert take_step(one) == RebalanceStep(assigned=frozenset({B}))


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_gives_up_what_it_had_and_joins_again(code: ErrorCode) -> None:
    one = stable(0)
    beat(one, respond(0, None, code=code))
    assert (one.state, one.heartbeat_at()) == (MembershipState.FENCED, float("inf"))
    assert take_step(one) == RebalanceStep(lost=frozenset({A}))
    request = one.build_heartbeat()
    assert (one.state, request.member_epoch, request.subscribed_topic_names) == (MembershipState.JOINING, 0, ["t"])


def test_a_member_that_is_fenced_within_a_step_gives_up_all_that_it_has_then() -> None:
    one = stable(0)
    beat(one, respond(2, 0, 1))
    step = one.rebalance_step(NAMES)
    assert step == RebalanceStep(assigned=frozenset({B}))
    beat(one, respond(0, None, code=ErrorCode.FENCED_MEMBER_EPOCH))
    drive(one, StepDone(step, NAMES))
    assert one.state is MembershipState.FENCED
    assert take_step(one) == RebalanceStep(lost=frozenset({A, B}))
    assert (one.state, one.owned) == (MembershipState.JOINING, frozenset())


def test_a_heartbeat_without_an_answer_is_sent_again_in_full() -> None:
    one = stable(0)
    drive(one, HeartbeatSent(one.build_heartbeat()), 5)
    drive(one, HeartbeatLost(), 6)
    request = one.build_heartbeat()
    assert (one.heartbeat_at(), request.subscribed_topic_names) == (6, ["t"])
    assert request.topic_partitions == [TopicPartitions(topic_id=TOPIC, partitions=[0])]


def test_a_coordinator_that_moves_costs_no_membership() -> None:
    one = stable(0)
    reply = respond(0, None, code=ErrorCode.NOT_COORDINATOR)
    assert drive(one, HeartbeatCompleted(1, reply), 5) is Remedy.SEARCH
    assert (one.state, one.owned) == (MembershipState.STABLE, {A})


def test_a_refusal_that_no_retry_mends_ends_the_membership() -> None:
    one = stable(0)
    assert drive(one, HeartbeatCompleted(1, respond(0, None, code=ErrorCode.UNSUPPORTED_ASSIGNOR)), 5) is Remedy.FAIL
    assert (one.state, one.heartbeat_at()) == (MembershipState.FATAL, float("inf"))


def test_an_expression_is_taken_back_by_an_empty_one() -> None:
    one = member()
    drive(one, Subscribed(GroupSubscription(regex="t.*")))
    assert beat(one, respond(1)).subscribed_topic_regex == "t.*"
    drive(one, Subscribed(GroupSubscription(topics=("t",))))
    request = one.build_heartbeat()
    assert (request.subscribed_topic_regex, request.subscribed_topic_names) == ("", ["t"])


def test_a_program_that_does_not_poll_is_out_and_joins_again_when_it_does() -> None:
    one = stable(0)
    assert not one.has_stalled(300)
    assert one.has_stalled(300.1)
    assert one.build_leave().member_epoch == -1
    drive(one, Stalled())
    assert (one.state, one.stalls_at()) == (MembershipState.STALE, float("inf"))
    drive(one, Polled(), 400)
    assert take_step(one) == RebalanceStep(lost=frozenset({A}))
    assert (one.state, one.build_heartbeat().member_epoch) == (MembershipState.JOINING, 0)


def test_a_static_member_leaves_for_a_while() -> None:
    assert member("i").build_leave().member_epoch == -2


def test_a_stale_commit_asks_for_a_heartbeat_at_once() -> None:
    one = stable(0)
    drive(one, CommitRefused(ErrorCode.STALE_MEMBER_EPOCH, 1))
    assert one.heartbeat_at() < 0


def test_a_program_that_leaves_has_lost_what_it_had_and_is_no_member() -> None:
    one = stable(0)
    drive(one, Left())
    assert (one.state, one.epoch, one.owned) == (MembershipState.UNSUBSCRIBED, 0, {A})


def test_an_id_of_the_coordinators_is_the_members() -> None:
    one = member()
    drive(one, IdGiven("theirs"))
    assert (one.member_id, one.build_heartbeat().member_id) == ("theirs", "theirs")


def test_an_event_that_cannot_happen_changes_nothing() -> None:
    one = stable(0)
    drive(one, Stalled())
    before = copy(one.membership)
    with pytest.raises(TransitionError):
        one.handle(Stalled(), 5)
    assert one.membership == before
