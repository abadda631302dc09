"""A broker's life with the controller as a machine without I/O: what it sends next, and when (KIP-631).

Owns the states between registration and end, as a table, and the pace of requests. Must not send anything or read a
clock: `pybroker/broker/heartbeat.py` does. What a controller makes of a heartbeat is in
`pybroker/controller/cluster/broker_control.py`.

Source: Kafka's BrokerLifecycleManager.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec

from pybroker.machine.transitions import Transitions


class Membership(Enum):
    """How far a broker has come in its cluster."""

    REGISTERING = "registering"
    """It has no broker epoch yet."""
    CATCHING_UP = "catching_up"
    """It reads metadata and opens partitions, and wants to be fenced."""
    READY = "ready"
    """It wants to be unfenced."""
    RUNNING = "running"
    """It is unfenced."""
    LEAVING = "leaving"
    """It wants to stop, and leads until others do."""
    LEFT = "left"
    """It sends nothing any more."""


class MembershipTrigger(Enum):
    """What moves a broker."""

    REGISTERED = "the controller gave it a broker epoch"
    OPENED = "its metadata is that of its registration, and its partitions are open"
    UNFENCED = "a heartbeat is answered: it is not fenced"
    FENCED = "a heartbeat is answered: it is fenced"
    LEAVE = "it is asked to stop"
    RELEASED = "a heartbeat is answered: it may stop"
    GIVE_UP = "it waits for the controller no longer"


_S, _T = Membership, MembershipTrigger

TRANSITIONS = {
    (_S.REGISTERING, _T.REGISTERED): _S.CATCHING_UP,
    (_S.REGISTERING, _T.GIVE_UP): _S.LEFT,
    # The same incarnation may have been unfenced before; its next heartbeat fences it.
    (_S.CATCHING_UP, _T.UNFENCED): _S.CATCHING_UP,
    (_S.CATCHING_UP, _T.FENCED): _S.CATCHING_UP,
    (_S.CATCHING_UP, _T.OPENED): _S.READY,
    (_S.CATCHING_UP, _T.LEAVE): _S.LEAVING,
    (_S.READY, _T.UNFENCED): _S.RUNNING,
    (_S.READY, _T.FENCED): _S.READY,
    (_S.READY, _T.LEAVE): _S.LEAVING,
    (_S.RUNNING, _T.UNFENCED): _S.RUNNING,
    (_S.RUNNING, _T.FENCED): _S.READY,
    (_S.RUNNING, _T.LEAVE): _S.LEAVING,
    (_S.LEAVING, _T.UNFENCED): _S.LEAVING,
    (_S.LEAVING, _T.FENCED): _S.LEAVING,
    (_S.LEAVING, _T.RELEASED): _S.LEFT,
    (_S.LEAVING, _T.GIVE_UP): _S.LEFT,
}

MEMBERSHIP = Transitions("broker membership", Membership.REGISTERING, TRANSITIONS)

_FIRST_PAUSE_MS = 10
_FIRST_BACKOFF_MS = 100
_LONGEST_PAUSE_OF_LEAVING_MS = 200
"""A controlled shutdown waits for elections and in-sync replicas, which come at once; heartbeats follow closely."""
_LONGEST_SILENCE_OF_LEAVING_MS = 3_000
"""A stop waits no longer for a controller that does not answer: it takes less to elect one, where one can be."""
_LONGEST_LEAVING_MS = 5 * 60_000
"""Kafka's."""


class LifecycleSettings(msgspec.Struct, frozen=True):
    """The times of a broker's life."""

    heartbeat_interval_ms: int
    """`broker.heartbeat.interval.ms`"""
    registration_timeout_ms: int
    """`initial.broker.registration.timeout.ms`"""


class Wish(NamedTuple):
    """What a heartbeat asks for."""

    want_fence: bool
    want_shut_down: bool


class Lifecycle:
    """Where a broker stands. Times are milliseconds of one clock that never goes back."""

    def __init__(self, settings: LifecycleSettings, now: int) -> None:
        self._settings = settings
        self.state = Membership.REGISTERING
        self._began = now
        # When the controller answered last, or when a wait for it began.
        self._answered = now
        # Invariant: the pause before the next try; it doubles until something succeeds or is wanted anew.
        self._pause_ms = 0
        self._left_at = 0

    @property
    def wish(self) -> Wish:
        """What the next heartbeat asks for."""
        return Wish(want_fence=self.state is Membership.CATCHING_UP, want_shut_down=self.state is Membership.LEAVING)

    @property
    def patience_s(self) -> float | None:
        """How long the answer to the next heartbeat is waited for, in seconds; None: as long as the way to it does."""
        return _LONGEST_SILENCE_OF_LEAVING_MS / 1000 if self.state is Membership.LEAVING else None

    def step_registered(self) -> None:
        """Note that the broker is registered; a heartbeat is due."""
        self._happen(MembershipTrigger.REGISTERED)
        self._pause_ms = 0

    def step_unregistered(self, now: int) -> int | None:
        """Return the pause before another registration, None when the time for it is over."""
        if now - self._began >= self._settings.registration_timeout_ms:
            self._happen(MembershipTrigger.GIVE_UP)
            return None
        return self._back_off(now)

    def step_opened(self) -> None:
        """Note that the broker can serve; a heartbeat is due that says so."""
        if self.state is Membership.CATCHING_UP:
            self._happen(MembershipTrigger.OPENED)
            self._pause_ms = 0

    def step_leave(self, now: int) -> None:
        """Note that the broker is to stop; a heartbeat is due that says so."""
        self._happen(MembershipTrigger.LEAVE)
        self._pause_ms = 0
        self._answered = self._left_at = now

    def step_answered(self, sent: Wish, now: int, *, is_fenced: bool, should_shut_down: bool) -> int | None:
        """Note the answer to a heartbeat; return the pause before the next one, None when there is none."""
        self._answered = now
        if self.state is Membership.LEAVING and sent.want_shut_down and should_shut_down:
            self._happen(MembershipTrigger.RELEASED)
            return None
        self._happen(MembershipTrigger.FENCED if is_fenced else MembershipTrigger.UNFENCED)
        if sent != self.wish:
            return 0
        if self.state is Membership.LEAVING:
            if now - self._left_at >= _LONGEST_LEAVING_MS:
                self._happen(MembershipTrigger.GIVE_UP)
                return None
            return self._pause_longer(_FIRST_PAUSE_MS, _LONGEST_PAUSE_OF_LEAVING_MS)
        if self.state is Membership.READY:  # as soon as the controller has what it waits for, it unfences
            return self._pause_longer(_FIRST_PAUSE_MS, self._settings.heartbeat_interval_ms)
        self._pause_ms = 0
        return self._settings.heartbeat_interval_ms

    def step_unanswered(self, now: int) -> int | None:
        """Note that a heartbeat failed; return the pause before the next one, None when there is none."""
        if self.state is Membership.LEAVING and now - self._answered >= _LONGEST_SILENCE_OF_LEAVING_MS:
            self._happen(MembershipTrigger.GIVE_UP)
            return None
        return self._back_off(now)

    def _back_off(self, now: int) -> int:
        pause = self._pause_longer(_FIRST_BACKOFF_MS, self._settings.heartbeat_interval_ms)
        if self.state is not Membership.REGISTERING:
            return pause
        return max(0, min(pause, self._began + self._settings.registration_timeout_ms - now))

    def _pause_longer(self, first_ms: int, longest_ms: int) -> int:
        self._pause_ms = min(max(first_ms, self._pause_ms * 2), longest_ms)
        return self._pause_ms

    def _happen(self, trigger: MembershipTrigger) -> None:
        self.state = MEMBERSHIP.following(self.state, trigger)
