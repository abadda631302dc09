"""The states of an application, and what moves it between them (`KafkaStreams.State`)."""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The state of a `KafkaStreams`."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    """Tasks are assigned, revoked or restored."""
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"
    """A thread has failed, and its error was not handled."""


S = State
TRANSITIONS: dict[State, frozenset[State]] = {
    S.CREATED: frozenset({S.REBALANCING, S.PENDING_SHUTDOWN, S.PENDING_ERROR}),
    S.REBALANCING: frozenset({S.RUNNING, S.PENDING_SHUTDOWN, S.PENDING_ERROR}),
    S.RUNNING: frozenset({S.REBALANCING, S.PENDING_SHUTDOWN, S.PENDING_ERROR}),
    S.PENDING_SHUTDOWN: frozenset({S.NOT_RUNNING}),
    S.NOT_RUNNING: frozenset(),
    S.PENDING_ERROR: frozenset({S.ERROR}),
    S.ERROR: frozenset({S.PENDING_SHUTDOWN}),
}
STARTED = frozenset({S.REBALANCING, S.RUNNING})
ENDED = frozenset({S.NOT_RUNNING, S.ERROR})


class UncaughtResponse(Enum):
    """The reaction of an application to a thread that has failed (KIP-671)."""

    REPLACE_THREAD = "REPLACE_THREAD"
    SHUTDOWN_CLIENT = "SHUTDOWN_CLIENT"
    SHUTDOWN_APPLICATION = "SHUTDOWN_APPLICATION"
