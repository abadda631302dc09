"""The states of a broker, with Kafka's names and numbers, and their transitions.

Owns the transition table. Must not know the work of a transition: `pybroker.node` does it.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from pybroker.machine.transitions import Transitions


class BrokerState(IntEnum):
    """The state of a broker, numbered as in Kafka's BrokerState metric."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class BrokerEvent(Enum):
    """An event of a broker."""

    START = "it is asked to start"
    LISTEN = "its directories are locked and its listeners open"
    RESPONSE = "its logs are open and it takes requests"
    FAIL = "it cannot start"
    STOP = "it is asked to stop, or cannot go on"
    LEAVE = "it leads nothing any more that another broker could lead"
    END = "everything is closed"


_S, _E = BrokerState, BrokerEvent

TRANSITIONS = {
    (_S.NOT_RUNNING, _E.START): _S.STARTING,
    (_S.STARTING, _E.LISTEN): _S.RECOVERY,
    (_S.STARTING, _E.FAIL): _S.SHUTTING_DOWN,
    (_S.RECOVERY, _E.RESPONSE): _S.RUNNING,
    (_S.RECOVERY, _E.FAIL): _S.SHUTTING_DOWN,
    (_S.RUNNING, _E.STOP): _S.PENDING_CONTROLLED_SHUTDOWN,
    (_S.PENDING_CONTROLLED_SHUTDOWN, _E.LEAVE): _S.SHUTTING_DOWN,
    (_S.SHUTTING_DOWN, _E.END): _S.NOT_RUNNING,
}

BROKER_LIFE = Transitions("broker life", BrokerState.NOT_RUNNING, TRANSITIONS)
