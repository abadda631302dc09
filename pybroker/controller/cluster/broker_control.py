"""The four control states of a broker (KIP-631), and their transitions.

Owns the transition table and the state of a registration. Must not know sessions or elections.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pybroker.machine.transitions import Transitions

if TYPE_CHECKING:
    from pybroker.metadata.image import BrokerRegistration


class BrokerControl(Enum):
    """The control state of a broker."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"
    SHUTDOWN_NOW = "shutdown_now"


class BrokerTrigger(Enum):
    """The request of a heartbeat, or its absence."""

    WANTS_TO_RUN = "wants_to_run"
    WANTS_TO_BE_FENCED = "wants_to_be_fenced"
    WANTS_TO_STOP_AND_LEADS = "wants_to_stop_and_leads"
    WANTS_TO_STOP = "wants_to_stop"
    FELL_SILENT = "fell_silent"


_S, _T = BrokerControl, BrokerTrigger

TRANSITIONS = {
    (_S.FENCED, _T.WANTS_TO_RUN): _S.UNFENCED,
    (_S.FENCED, _T.WANTS_TO_BE_FENCED): _S.FENCED,
    (_S.FENCED, _T.WANTS_TO_STOP): _S.SHUTDOWN_NOW,
    (_S.FENCED, _T.WANTS_TO_STOP_AND_LEADS): _S.SHUTDOWN_NOW,
    (_S.FENCED, _T.FELL_SILENT): _S.FENCED,
    (_S.UNFENCED, _T.WANTS_TO_RUN): _S.UNFENCED,
    (_S.UNFENCED, _T.WANTS_TO_BE_FENCED): _S.FENCED,
    (_S.UNFENCED, _T.WANTS_TO_STOP): _S.SHUTDOWN_NOW,
    (_S.UNFENCED, _T.WANTS_TO_STOP_AND_LEADS): _S.CONTROLLED_SHUTDOWN,
    (_S.UNFENCED, _T.FELL_SILENT): _S.FENCED,
    # A controlled shutdown cannot be cancelled: other requests of the broker do not end it.
    (_S.CONTROLLED_SHUTDOWN, _T.WANTS_TO_RUN): _S.CONTROLLED_SHUTDOWN,
    (_S.CONTROLLED_SHUTDOWN, _T.WANTS_TO_BE_FENCED): _S.FENCED,
    (_S.CONTROLLED_SHUTDOWN, _T.WANTS_TO_STOP_AND_LEADS): _S.CONTROLLED_SHUTDOWN,
    (_S.CONTROLLED_SHUTDOWN, _T.WANTS_TO_STOP): _S.SHUTDOWN_NOW,
    (_S.CONTROLLED_SHUTDOWN, _T.FELL_SILENT): _S.FENCED,
}

BROKER_CONTROL = Transitions("broker control", _S.FENCED, TRANSITIONS)


def control_of(broker: BrokerRegistration) -> BrokerControl:
    """Return the control state of a registered broker."""
    if broker.fenced:
        return BrokerControl.FENCED
    return BrokerControl.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerControl.UNFENCED
