"""Transition tables raise on what they do not list."""

from __future__ import annotations

from enum import Enum

import pytest

from pybroker.machine.transitions import TransitionError, Transitions


class Door(Enum):
    OPEN = 1
    SHUT = 2
    WALLED_UP = 3


class Hand(Enum):
    PUSH_IT = 1
    PULL = 2


DOOR = Transitions("door", Door.SHUT, {(Door.SHUT, Hand.PUSH_IT): Door.OPEN, (Door.OPEN, Hand.PULL): Door.SHUT})


@pytest.mark.parametrize("state", Door)
@pytest.mark.parametrize("trigger", Hand)
def test_every_pair_is_listed_or_raises(state: Door, trigger: Hand) -> None:
    if (state, trigger) in DOOR.table:
        assert DOOR.following(state, trigger) is DOOR.table[state, trigger]
        return
    with pytest.raises(TransitionError, match=f"door: {trigger.name} cannot happen in state {state.name}"):
        DOOR.following(state, trigger)


def test_a_state_that_no_way_leads_to_is_found() -> None:
    assert DOOR.unreachable() == [Door.WALLED_UP]
