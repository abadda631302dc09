"""The states of a broker's life, as Kafka names and numbers them, and which may follow which.

Owns the table. Must not know what is done on the way from one state to the next: that is the node's.
"""

from __future__ import annotations

from enum import IntEnum


class BrokerState(IntEnum):
    """Where a broker is in its life; the numbers are those of Kafka's BrokerState metric."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


# What may follow a state. A start that fails and a broker that is told to stop while it starts shut down from there.
TRANSITIONS: dict[BrokerState, frozenset[BrokerState]] = {
    BrokerState.NOT_RUNNING: frozenset({BrokerState.STARTING}),
    BrokerState.STARTING: frozenset({BrokerState.RECOVERY, BrokerState.SHUTTING_DOWN}),
    BrokerState.RECOVERY: frozenset({BrokerState.RUNNING, BrokerState.SHUTTING_DOWN}),
    BrokerState.RUNNING: frozenset({BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN}),
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: frozenset({BrokerState.SHUTTING_DOWN}),
    BrokerState.SHUTTING_DOWN: frozenset({BrokerState.NOT_RUNNING}),
}


class ForbiddenTransition(Exception):  # noqa: N818  # it names the transition, as the table does
    """A state cannot follow another; nothing has changed."""

    def __init__(self, before: BrokerState, after: BrokerState) -> None:
        super().__init__(f"a broker cannot go from {before.name} to {after.name}")


def next_state(before: BrokerState, after: BrokerState) -> BrokerState:
    """Return `after` if the table lists it behind `before`; raises ForbiddenTransition."""
    if after not in TRANSITIONS[before]:
        raise ForbiddenTransition(before, after)
    return after
