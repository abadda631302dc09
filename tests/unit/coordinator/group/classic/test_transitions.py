"""The states of a classic group: those of Kafka, and no way but Kafka's between them."""

from __future__ import annotations

import itertools

import pytest

from pybroker.coordinator.group.classic.transitions import CLASSIC_LIFE, ClassicState, ClassicStep
from pybroker.machine.transitions import TransitionError

PREVIOUS = {
    ClassicState.EMPTY: {ClassicState.PREPARING_REBALANCE},
    ClassicState.PREPARING_REBALANCE: {
        ClassicState.STABLE,
        ClassicState.COMPLETING_REBALANCE,
        ClassicState.EMPTY,
    },
    ClassicState.COMPLETING_REBALANCE: {ClassicState.PREPARING_REBALANCE},
    ClassicState.STABLE: {ClassicState.COMPLETING_REBALANCE},
    ClassicState.DEAD: set(ClassicState) - {ClassicState.DEAD},
}
"""Kafka's `ClassicGroupState.validPreviousStates`; there a dead group may die again."""


def test_every_way_is_one_of_kafkas_and_none_lacks() -> None:
    ways = {(before, after) for (before, _), after in CLASSIC_LIFE.table.items()}
    assert ways == {(before, after) for after, many in PREVIOUS.items() for before in many}


@pytest.mark.parametrize(("state", "step"), list(itertools.product(ClassicState, ClassicStep)))
def test_what_is_not_listed_cannot_happen(state: ClassicState, step: ClassicStep) -> None:
    if (state, step) in CLASSIC_LIFE.table:
        assert CLASSIC_LIFE.following(state, step) is not state
    else:
        with pytest.raises(TransitionError):
            CLASSIC_LIFE.following(state, step)


def test_every_state_can_be_reached() -> None:
    assert CLASSIC_LIFE.unreachable() == []
