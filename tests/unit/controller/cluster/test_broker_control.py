"""The controller's states of a broker (KIP-631)."""

from __future__ import annotations

import pytest

from pybroker.controller.cluster.broker_control import BROKER_CONTROL, BrokerControl, BrokerTrigger
from pybroker.machine.transitions import TransitionError


def test_every_state_can_be_reached() -> None:
    assert BROKER_CONTROL.unreachable() == []


@pytest.mark.parametrize("trigger", BrokerTrigger)
@pytest.mark.parametrize("state", BrokerControl)
def test_a_broker_that_is_to_shut_down_now_has_no_further_transition(
    state: BrokerControl, trigger: BrokerTrigger
) -> None:
    if state is BrokerControl.SHUTDOWN_NOW:
        with pytest.raises(TransitionError):
            BROKER_CONTROL.following(state, trigger)
    else:
        assert BROKER_CONTROL.following(state, trigger) in BrokerControl


def test_silence_always_fences() -> None:
    after = {BROKER_CONTROL.table[state, BrokerTrigger.FELL_SILENT] for state in list(BrokerControl)[:3]}
    assert after == {BrokerControl.FENCED}
