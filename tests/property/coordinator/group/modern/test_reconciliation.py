"""Reconciliation beside a twin that knows sets alone, and beside Kafka's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group.modern.member import Held, Member, MemberState, Owned
from pybroker.coordinator.group.modern.reconciliation import NOBODY, Goal, UnknownStateError, reconcile
from tests.support import group_oracle

TOPICS = [bytes([number]) * 16 for number in range(3)]
PLACES = [(topic, partition) for topic in TOPICS for partition in range(3)]
Pairs = frozenset[tuple[bytes, int]]


class Case(NamedTuple):
    member: Member
    goal: Goal
    epochs: Held
    owned: Owned | None


def _held(pairs: Pairs, epochs: dict[tuple[bytes, int], int]) -> Held:
    return {
        topic: {partition: epochs[topic, partition] for t, partition in sorted(pairs) if t == topic}
        for topic in sorted({topic for topic, _ in pairs})
    }


def _owned(pairs: Pairs) -> Owned:
    return {topic: frozenset(p for t, p in pairs if t == topic) for topic in {topic for topic, _ in pairs}}


def _pairs(held: Held | Owned) -> Pairs:
    return frozenset((topic, partition) for topic, partitions in held.items() for partition in partitions)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    epoch = draw(st.integers(1, 4))
    since = {place: draw(st.integers(1, epoch)) for place in PLACES}
    some = st.frozensets(st.sampled_from(PLACES))
    state = draw(st.sampled_from(MemberState))
    assigned = draw(some)
    revoking = draw(some) - assigned if state is MemberState.UNREVOKED_PARTITIONS else frozenset()
    others = draw(some) - assigned - revoking
    member = Member(
        "member",
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        topics=draw(st.frozensets(st.sampled_from(["t0", "t1", "t2"]))),
        assigned=_held(assigned, since),
        revoking=_held(revoking, since),
    )
    exist = draw(st.frozensets(st.sampled_from(range(3))))
    goal = Goal(
        epoch + draw(st.integers(0, 2)),
        _owned(draw(some | st.just(assigned))),
        frozenset(TOPICS[number] for number in exist if f"t{number}" in member.topics),
        draw(st.booleans()),
    )
    epochs = {**dict.fromkeys(assigned | revoking, epoch), **{place: draw(st.integers(1, 6)) for place in others}}
    owned = draw(st.sampled_from([None, frozenset(), assigned, assigned | revoking]) | some)
    return Case(member, goal, _held(frozenset(epochs), epochs), None if owned is None else _owned(owned))


def _reconciled(case: Case) -> Member | None:
    def epoch_of(topic: bytes, partition: int) -> int:
        return case.epochs.get(topic, {}).get(partition, NOBODY)

    try:
        return reconcile(case.member, case.goal, epoch_of, case.owned)
    except UnknownStateError:
        return None


def _twin(case: Case) -> tuple[MemberState, int, Pairs, Pairs] | None:
    """State, epoch, what it keeps and what it gives back, by sets."""
    member, goal = case.member, case.goal
    has, gives = _pairs(member.assigned), _pairs(member.revoking)
    wanted = frozenset(place for place in _pairs(goal.target) if place[0] in goal.subscribed)

    def still(places: Pairs) -> bool:
        return case.owned is None or bool(_pairs(case.owned) & places)

    if member.state is MemberState.UNKNOWN and (case.owned is None or case.owned):
        return None
    rests = member.state is MemberState.STABLE and member.epoch == goal.epoch
    if rests or (member.state is MemberState.UNREVOKED_PARTITIONS and still(gives)):
        lost = frozenset(place for place in has if place[0] not in goal.subscribed)
        if goal.subscription_changed and lost and still(gives | lost):
            return MemberState.UNREVOKED_PARTITIONS, member.epoch, has - lost, gives | lost
        return member.state, member.epoch, has - lost if goal.subscription_changed else has, gives
    if has - wanted and still(has - wanted):
        epoch = goal.epoch if member.state is MemberState.UNKNOWN else member.epoch
        return MemberState.UNREVOKED_PARTITIONS, epoch, has & wanted, has - wanted
    free = frozenset(place for place in wanted - has if place not in _pairs(case.epochs) or place in gives)
    state = MemberState.UNRELEASED_PARTITIONS if wanted - has - free else MemberState.STABLE
    return state, goal.epoch, has & wanted | free, frozenset()


@given(cases())
@settings(max_examples=500)
def test_it_says_what_the_equation_says(case: Case) -> None:
    after = _reconciled(case)
    ours = after and (after.state, after.epoch, _pairs(after.assigned), _pairs(after.revoking))
    assert ours == _twin(case)


@given(cases())
@settings(max_examples=500)
def test_nothing_is_taken_that_another_member_has(case: Case) -> None:
    after = _reconciled(case)
    if after is None:
        return
    had = _pairs(case.member.assigned) | _pairs(case.member.revoking)
    others = _pairs(case.epochs) - had
    assert not (_pairs(after.assigned) | _pairs(after.revoking)) & others


@pytest.fixture(scope="module")
def oracle() -> Iterator[group_oracle.GroupOracle]:
    with group_oracle.running() as running:
        yield running


@pytest.mark.java
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_it_says_what_kafka_says(oracle: group_oracle.GroupOracle, case: Case) -> None:
    member, goal = case.member, case.goal
    theirs = oracle.query(
        "reconcile",
        member={
            "epoch": member.epoch,
            "previous_epoch": member.previous_epoch,
            "state": member.state,
            "topics": sorted(member.topics),
            "assigned": _json(member.assigned),
            "revoking": _json(member.revoking),
        },
        epoch=goal.epoch,
        target={topic.hex(): sorted(partitions) for topic, partitions in goal.target.items()},
        topics={f"t{n}": topic.hex() for n, topic in enumerate(TOPICS) if _exists(case, n)},
        partition_epochs=_json(case.epochs),
        owned=None if case.owned is None else {topic.hex(): sorted(ps) for topic, ps in case.owned.items()},
        changed=goal.subscription_changed,
    )
    after = _reconciled(case)
    if after is None:
        assert "error" in theirs
        return
    assert theirs == {
        "epoch": after.epoch,
        "previous_epoch": after.previous_epoch,
        "state": after.state,
        "assigned": _json(after.assigned),
        "revoking": _json(after.revoking),
    }


def _exists(case: Case, number: int) -> bool:
    subscribed: Any = case.goal.subscribed
    return TOPICS[number] in subscribed


def _json(held: Held) -> dict[str, dict[str, int]]:
    return {
        topic.hex(): {str(partition): epoch for partition, epoch in partitions.items()}
        for topic, partitions in held.items()
    }
