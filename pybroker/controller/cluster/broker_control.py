"""The four states in which the controller keeps a broker (KIP-631), and what leads from one to another.

Owns the table and where a registration stands in it. Must not know sessions or elections.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pybroker.machine.transitions import Transitions

if TYPE_CHECKING:
    from pybroker.metadata.image import BrokerRegistration


class BrokerControl(Enum):
    """A broker, as the controller lets it be."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"
    SHUTDOWN_NOW = "shutdown_now"


class BrokerTrigger(Enum):
    """What a heartbeat asks for, or its absence."""

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
    # A shutdown is not taken back: whatever else a broker asks for, it goes on.
    (_S.CONTROLLED_SHUTDOWN, _T.WANTS_TO_RUN): _S.CONTROLLED_SHUTDOWN,
    (_S.CONTROLLED_SHUTDOWN, _T.WANTS_TO_BE_FENCED): _S.FENCED,
    (_S.CONTROLLED_SHUTDOWN, _T.WANTS_TO_STOP_AND_LEADS): _S.CONTROLLED_SHUTDOWN,
    (_S.CONTROLLED_SHUTDOWN, _T.WANTS_TO_STOP): _S.SHUTDOWN_NOW,
    (_S.CONTROLLED_SHUTDOWN, _T.FELL_SILENT): _S.FENCED,
}

BROKER_CONTROL = Transitions("broker control", _S.FENCED, TRANSITIONS)


def control_of(broker: BrokerRegistration) -> BrokerControl:
    """Return where a registered broker stands."""
    if broker.fenced:
        return BrokerControl.FENCED
    return BrokerControl.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerControl.UNFENCED
