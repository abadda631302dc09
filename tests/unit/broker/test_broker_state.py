from __future__ import annotations

import itertools

import pytest

from pybroker.broker.broker_state import BROKER_LIFE, TRANSITIONS, BrokerEvent, BrokerState
from pybroker.machine.transitions import TransitionError


@pytest.mark.parametrize(("state", "event"), list(itertools.product(BrokerState, BrokerEvent)))
def test_only_what_the_table_lists_may_happen(state: BrokerState, event: BrokerEvent) -> None:
    if (state, event) in TRANSITIONS:
        assert BROKER_LIFE.following(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(TransitionError, match=f"{event.name} cannot happen in state {state.name}"):
            BROKER_LIFE.following(state, event)


def test_every_state_can_be_reached_and_left() -> None:
    assert BROKER_LIFE.unreachable() == []
    assert {state for state, _ in TRANSITIONS} == set(BrokerState)
