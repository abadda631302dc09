"""A member of a classic group: every pair of state and trigger, and the ways through a rebalance."""

from __future__ import annotations

import itertools
from copy import copy
from typing import Any

import pytest

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.classic import (
    NO_GENERATION,
    TRANSITIONS,
    ClassicMember,
    ClassicRules,
    ClassicState,
    ClassicTrigger,
)
from pybroker.client.membership.classic_events import (
    HeartbeatCompleted,
    HeartbeatSent,
    JoinCompleted,
    RejoinWanted,
    StepDone,
    Subscribed,
    SyncCompleted,
)
from pybroker.client.membership.events import CommitRefused, Left, Polled
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.machine.transitions import TransitionError, Transitions
from pybroker.protocol.errors import ErrorCode

A, B, C = (TopicPartition("t", index) for index in range(3))
NONE = frozenset[TopicPartition]()


def member(*, cooperative: bool = False) -> ClassicMember:
    return ClassicMember(
        ClassicRules(session_timeout_s=45, heartbeat_interval_s=3, max_poll_interval_s=300, cooperative=cooperative)
    )


def drive(one: ClassicMember, event: Any, now: float = 0) -> Remedy:
    """Decide and apply, and see that the decision alone changes nothing."""
    before = copy(one.membership)
    outcome = one.handle(event, now)
    assert one.membership == before
    one.apply(outcome.membership)
    return outcome.remedy


def take_step(one: ClassicMember) -> RebalanceStep:
    step = one.rebalance_step()
    assert step is not None
    drive(one, StepDone(step))
    return step


def joined(*partitions: TopicPartition, cooperative: bool = False) -> ClassicMember:
    """A stable member of generation 1 with these partitions."""
    one = member(cooperative=cooperative)
    drive(one, Subscribed(NONE, ""), 0)
    take_step(one)
    drive(one, JoinCompleted(ErrorCode.NONE, "m", 1, "range"), 0)
    drive(one, SyncCompleted(ErrorCode.NONE, 1, frozenset(partitions)), 0)
    take_step(one)
    assert (one.state, one.owned) == (ClassicState.STABLE, frozenset(partitions))
    return one


def test_what_the_table_does_not_list_raises() -> None:
    table = Transitions("ClassicMember", ClassicState.OUTSIDE, TRANSITIONS)
    for state, trigger in itertools.product(ClassicState, ClassicTrigger):
        if (state, trigger) in TRANSITIONS:
            assert table.following(state, trigger) is TRANSITIONS[state, trigger]
        else:
            with pytest.raises(TransitionError):
                table.following(state, trigger)
    assert table.unreachable() == []


def test_a_new_member_is_given_an_id_and_joins_with_it() -> None:
    one = member()
    drive(one, Subscribed(NONE, ""), 0)
    assert take_step(one) == RebalanceStep()
    assert drive(one, JoinCompleted(ErrorCode.MEMBER_ID_REQUIRED, "m", NO_GENERATION, None), 0) is Remedy.NONE
    assert (one.state, one.member_id, one.heartbeat_at()) == (ClassicState.JOINING, "m", float("inf"))
    assert drive(one, JoinCompleted(ErrorCode.NONE, "m", 1, "range"), 10) is Remedy.NONE
    assert (one.state, one.heartbeat_at()) == (ClassicState.SYNCING, 13)
    assert drive(one, SyncCompleted(ErrorCode.NONE, 1, frozenset({A})), 11) is Remedy.NONE
    assert take_step(one) == RebalanceStep(assigned=frozenset({A}))
    assert (one.state, one.owned) == (ClassicState.STABLE, {A})


def test_an_eager_member_gives_everything_back_before_it_joins_again() -> None:
    one = joined(A, B)
    drive(one, HeartbeatCompleted(ErrorCode.REBALANCE_IN_PROGRESS, 1), 5)
    assert take_step(one) == RebalanceStep(revoked=frozenset({A, B}))
    assert (one.state, one.owned) == (ClassicState.JOINING, NONE)


def test_a_cooperative_member_keeps_what_it_is_assigned_again_and_joins_once_more_for_the_rest() -> None:
    one = joined(A, B, cooperative=True)
    drive(one, HeartbeatCompleted(ErrorCode.REBALANCE_IN_PROGRESS, 1), 5)
    assert take_step(one) == RebalanceStep()
    drive(one, JoinCompleted(ErrorCode.NONE, "m", 2, "cooperative-sticky"), 6)
    drive(one, SyncCompleted(ErrorCode.NONE, 2, frozenset({A})), 6)
    assert take_step(one) == RebalanceStep(revoked=frozenset({B}), assigned=NONE)
    assert (one.state, one.owned) == (ClassicState.PREPARING, {A})


def test_a_cooperative_member_gives_back_at_once_what_it_no_longer_wants() -> None:
    one = joined(A, B, cooperative=True)
    drive(one, Subscribed(frozenset({A}), ""), 5)
    assert take_step(one) == RebalanceStep(revoked=frozenset({B}))


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_an_expelled_member_has_lost_its_partitions_and_joins_anew(code: ErrorCode) -> None:
    one = joined(A)
    assert drive(one, HeartbeatCompleted(code, 1), 5) is Remedy.NONE
    assert take_step(one) == RebalanceStep(lost=frozenset({A}))
    assert (one.state, one.generation) == (ClassicState.JOINING, NO_GENERATION)
    assert one.member_id == ("m" if code == ErrorCode.ILLEGAL_GENERATION else "")


def test_expelled_while_it_takes_partitions_it_gives_them_up() -> None:
    one = joined()
    drive(one, HeartbeatCompleted(ErrorCode.REBALANCE_IN_PROGRESS, 1), 5)
    take_step(one)
    drive(one, JoinCompleted(ErrorCode.NONE, "m", 2, "range"), 6)
    drive(one, SyncCompleted(ErrorCode.NONE, 2, frozenset({A})), 6)
    step = one.rebalance_step()
    assert step is not None
    drive(one, HeartbeatCompleted(ErrorCode.UNKNOWN_MEMBER_ID, 2), 7)
    drive(one, StepDone(step))
    assert take_step(one) == RebalanceStep(lost=frozenset({A}))


def test_a_rebalance_that_goes_on_without_the_sync_is_joined_again() -> None:
    one = joined()
    drive(one, HeartbeatCompleted(ErrorCode.REBALANCE_IN_PROGRESS, 1), 5)
    take_step(one)
    drive(one, JoinCompleted(ErrorCode.NONE, "m", 2, "range"), 6)
    assert drive(one, SyncCompleted(ErrorCode.REBALANCE_IN_PROGRESS, 2, NONE), 7) is Remedy.NONE
    assert one.state is ClassicState.JOINING


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (ErrorCode.NOT_COORDINATOR, Remedy.SEARCH),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, Remedy.SEARCH),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Remedy.WAIT),
    ],
)
def test_a_coordinator_that_moves_costs_no_membership(code: ErrorCode, remedy: Remedy) -> None:
    one = joined(A)
    assert drive(one, HeartbeatCompleted(code, 1), 5) is remedy
    assert (one.state, one.owned) == (ClassicState.STABLE, {A})


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
)
def test_a_refusal_that_no_retry_mends_ends_the_membership(code: ErrorCode) -> None:
    one = joined(A)
    assert drive(one, HeartbeatCompleted(code, 1), 5) is Remedy.FAIL
    assert (one.state, one.heartbeat_at(), one.rebalance_step()) == (ClassicState.FAILED, float("inf"), None)
    drive(one, Subscribed(NONE, ""), 9)
    assert take_step(one) == RebalanceStep(lost=frozenset({A}))


def test_an_answer_to_an_older_generation_changes_nothing() -> None:
    one = joined(A)
    assert drive(one, HeartbeatCompleted(ErrorCode.UNKNOWN_MEMBER_ID, 0), 5) is Remedy.NONE
    assert drive(one, SyncCompleted(ErrorCode.NONE, 1, frozenset({B})), 5) is Remedy.NONE
    drive(one, CommitRefused(ErrorCode.ILLEGAL_GENERATION, 0))
    assert (one.state, one.owned) == (ClassicState.STABLE, {A})


def test_a_commit_refused_by_a_rebalance_makes_the_member_join_it() -> None:
    one = joined(A)
    drive(one, CommitRefused(ErrorCode.REBALANCE_IN_PROGRESS, 1))
    assert one.state is ClassicState.PREPARING


def test_a_change_during_a_rebalance_is_followed_by_another() -> None:
    one = joined()
    drive(one, HeartbeatCompleted(ErrorCode.REBALANCE_IN_PROGRESS, 1), 5)
    take_step(one)
    drive(one, JoinCompleted(ErrorCode.NONE, "m", 2, "range"), 6)
    drive(one, RejoinWanted("cached metadata has changed"))
    drive(one, SyncCompleted(ErrorCode.NONE, 2, frozenset({A})), 7)
    take_step(one)
    assert (one.state, one.reason) == (ClassicState.PREPARING, "cached metadata has changed")


def test_a_program_that_does_not_poll_is_out_after_the_interval() -> None:
    one = joined(A)
    drive(one, Polled(), 100)
    assert not one.has_stalled(400)
    assert (one.has_stalled(400.1), one.stalls_at()) == (True, 400)
    drive(one, Left())
    assert (one.state, one.stalls_at()) == (ClassicState.OUTSIDE, float("inf"))
    drive(one, Subscribed(NONE, ""), 500)
    assert take_step(one) == RebalanceStep(lost=frozenset({A}))


def test_a_silent_coordinator_is_looked_for_after_the_session() -> None:
    one = joined(A)
    drive(one, HeartbeatCompleted(ErrorCode.NONE, 1), 10)
    assert not one.is_unanswered(55)
    assert one.is_unanswered(55.1)


def test_the_next_heartbeat_is_due_an_interval_after_the_last_was_sent() -> None:
    one = joined(A)
    drive(one, HeartbeatSent(), 20)
    assert one.heartbeat_at() == 23
