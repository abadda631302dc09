"""A broker's membership as a machine without I/O: which heartbeat to send, and when (KIP-631).

Owns the states between registration and shutdown, as a table, and the intervals of requests. Must not send anything or
read a clock: `pybroker/broker/heartbeat.py` does. `pybroker/controller/cluster/broker_control.py` handles heartbeats.

Source: Kafka's BrokerLifecycleManager.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec

from pybroker.machine.transitions import Transitions


class Membership(Enum):
    """The membership state of a broker."""

    REGISTERING = "registering"
    """Without a broker epoch yet."""
    CATCHING_UP = "catching_up"
    """Replays metadata and opens partitions; requests to be fenced."""
    READY = "ready"
    """Requests to be unfenced."""
    RUNNING = "running"
    """Unfenced."""
    LEAVING = "leaving"
    """Requests to stop, and stays leader until other brokers take over."""
    LEFT = "left"
    """Sends no heartbeats."""


class MembershipTrigger(Enum):
    """An event that changes the membership state."""

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
    # The incarnation may still be unfenced from a previous registration; its next heartbeat fences it.
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
"""Maximum pause between heartbeats in a controlled shutdown: the awaited elections and ISR changes take little time."""
_LONGEST_SILENCE_OF_LEAVING_MS = 3_000
"""Maximum time that a shutdown waits for a controller that does not respond. An election of a controller takes less."""
_LONGEST_LEAVING_MS = 5 * 60_000
"""Maximum duration of a controlled shutdown, as in Kafka."""


class LifecycleSettings(msgspec.Struct, frozen=True):
    """The intervals and timeouts of the lifecycle."""

    heartbeat_interval_ms: int
    """`broker.heartbeat.interval.ms`"""
    registration_timeout_ms: int
    """`initial.broker.registration.timeout.ms`"""


class RequestedState(NamedTuple):
    """The state that a heartbeat requests."""

    want_fence: bool
    want_shut_down: bool


class Lifecycle:
    """The membership of a broker. Times are milliseconds of one monotonic clock."""

    def __init__(self, settings: LifecycleSettings, now: int) -> None:
        self._settings = settings
        self.state = Membership.REGISTERING
        self._began = now
        # Time of the controller's last response, or of the start of the controlled shutdown.
        self._responded = now
        # The pause before the next attempt. It doubles until an attempt succeeds or the requested state changes.
        self._pause_ms = 0
        self._left_at = 0

    @property
    def requested_state(self) -> RequestedState:
        """The state that the next heartbeat requests."""
        return RequestedState(
            want_fence=self.state is Membership.CATCHING_UP, want_shut_down=self.state is Membership.LEAVING
        )

    @property
    def patience_s(self) -> float | None:
        """Timeout of the next heartbeat in seconds; None for the timeout of the controller channel."""
        return _LONGEST_SILENCE_OF_LEAVING_MS / 1000 if self.state is Membership.LEAVING else None

    def step_registered(self) -> None:
        """Handle the registration of the broker; a heartbeat is due."""
        self._happen(MembershipTrigger.REGISTERED)
        self._pause_ms = 0

    def step_unregistered(self, now: int) -> int | None:
        """Return the pause before the next registration in milliseconds, None after the registration timeout."""
        if now - self._began >= self._settings.registration_timeout_ms:
            self._happen(MembershipTrigger.GIVE_UP)
            return None
        return self._back_off(now)

    def step_opened(self) -> None:
        """Handle that the broker can serve; a heartbeat that requests unfencing is due."""
        if self.state is Membership.CATCHING_UP:
            self._happen(MembershipTrigger.OPENED)
            self._pause_ms = 0

    def step_leave(self, now: int) -> None:
        """Start the controlled shutdown; a heartbeat that requests it is due."""
        self._happen(MembershipTrigger.LEAVE)
        self._pause_ms = 0
        self._responded = self._left_at = now

    def step_responded(self, sent: RequestedState, now: int, *, is_fenced: bool, should_shut_down: bool) -> int | None:
        """Handle the response to a heartbeat.

        Return the pause before the next one in milliseconds, None if it was the last.
        """
        self._responded = now
        if self.state is Membership.LEAVING and sent.want_shut_down and should_shut_down:
            self._happen(MembershipTrigger.RELEASED)
            return None
        self._happen(MembershipTrigger.FENCED if is_fenced else MembershipTrigger.UNFENCED)
        if sent != self.requested_state:
            return 0
        if self.state is Membership.LEAVING:
            if now - self._left_at >= _LONGEST_LEAVING_MS:
                self._happen(MembershipTrigger.GIVE_UP)
                return None
            return self._pause_longer(_FIRST_PAUSE_MS, _LONGEST_PAUSE_OF_LEAVING_MS)
        if self.state is Membership.READY:  # the controller unfences the broker once it has caught up
            return self._pause_longer(_FIRST_PAUSE_MS, self._settings.heartbeat_interval_ms)
        self._pause_ms = 0
        return self._settings.heartbeat_interval_ms

    def step_unanswered(self, now: int) -> int | None:
        """Handle a failed heartbeat. Return the pause before the next one in milliseconds, None if it was the last."""
        if self.state is Membership.LEAVING and now - self._responded >= _LONGEST_SILENCE_OF_LEAVING_MS:
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
