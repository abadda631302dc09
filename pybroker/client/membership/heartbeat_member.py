"""The common part of members of KIP-848 and KIP-1071, as Kafka's `AbstractMembershipManager`.

Owns the states of a member, the due time of heartbeats, and the reaction to responses. Must not know what an
assignment contains: `modern` and `streams` do. `pybroker.client.membership.machine` defines the interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from enum import Enum, auto
from typing import Any, Generic, TypeVar

import msgspec

from pybroker.client.membership.events import CommitRefused, Left, Polled
from pybroker.client.membership.heartbeat_events import (
    HeartbeatCompleted,
    HeartbeatLost,
    HeartbeatRequest,
    HeartbeatSent,
    Stalled,
)
from pybroker.client.membership.machine import Outcome
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.machine.transitions import Transitions
from pybroker.protocol.errors import ErrorCode

JOIN_EPOCH, LEAVE_EPOCH = 0, -1


class MembershipState(Enum):
    """The state of a member."""

    UNSUBSCRIBED = auto()
    JOINING = auto()
    RECONCILING = auto()
    """The program revokes and takes over partitions, to reach the target assignment."""
    ACKNOWLEDGING = auto()
    """The next heartbeat acknowledges the partitions of the program."""
    STABLE = auto()
    FENCED = auto()
    """The program revokes its partitions, then joins again."""
    STALE = auto()
    """Left after max.poll.interval.ms without a poll; joins again when the program polls or subscribes."""
    FATAL = auto()


class MembershipTrigger(Enum):
    """A trigger of a transition."""

    WANTS_IN = auto()
    GOT_TARGET = auto()
    HAS_TARGET = auto()
    RECONCILED = auto()
    ACKNOWLEDGED = auto()
    WAS_FENCED = auto()
    GAVE_UP = auto()
    STALLED = auto()
    LEFT = auto()
    REFUSED = auto()


_S, _T = MembershipState, MembershipTrigger
IN_GROUP = (_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE)
OUT_OF_GROUP = (_S.UNSUBSCRIBED, _S.STALE, _S.FATAL)

TRANSITIONS: dict[tuple[MembershipState, MembershipTrigger], MembershipState] = {
    (_S.UNSUBSCRIBED, _T.WANTS_IN): _S.JOINING,
    (_S.FATAL, _T.WANTS_IN): _S.JOINING,
    (_S.STALE, _T.WANTS_IN): _S.FENCED,
    **{(state, _T.GOT_TARGET): _S.RECONCILING for state in IN_GROUP},
    (_S.JOINING, _T.HAS_TARGET): _S.STABLE,
    (_S.RECONCILING, _T.HAS_TARGET): _S.STABLE,
    (_S.RECONCILING, _T.RECONCILED): _S.ACKNOWLEDGING,
    (_S.ACKNOWLEDGING, _T.ACKNOWLEDGED): _S.STABLE,
    **{(state, _T.WAS_FENCED): _S.FENCED for state in IN_GROUP},
    (_S.FENCED, _T.GAVE_UP): _S.JOINING,
    **{(state, _T.STALLED): _S.STALE for state in (*IN_GROUP, _S.FENCED)},
    **{(state, _T.LEFT): _S.UNSUBSCRIBED for state in (*IN_GROUP, _S.FENCED, _S.STALE, _S.FATAL)},
    **{(state, _T.REFUSED): _S.FATAL for state in (*IN_GROUP, _S.FENCED)},
}
STATES = Transitions("HeartbeatMember", _S.UNSUBSCRIBED, TRANSITIONS)

SEARCH = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
EXPELLED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}


class MemberRules(msgspec.Struct, frozen=True, kw_only=True):
    """The group and instance id of the member, and its settings."""

    group_id: str
    instance_id: str | None = None
    max_poll_interval_s: float


Assignment = TypeVar("Assignment")


class HeartbeatMembership(msgspec.Struct, Generic[Assignment], kw_only=True):
    """The state of a member. A decision changes a copy; a msgspec struct is the cheapest to copy."""

    member_id: str
    nothing: Assignment
    """The empty assignment; assignments are replaced and never mutated."""
    owned: Assignment
    """The assignment of the program, as heartbeats acknowledge it. Only rebalance steps extend it."""
    target: Assignment
    sent: Assignment | None = None
    """The assignment that the coordinator knows; None before the first heartbeat after joining."""
    state: MembershipState = MembershipState.UNSUBSCRIBED
    epoch: int = JOIN_EPOCH
    interval_s: float = 0.0
    """The heartbeat interval from the coordinator's response; 0 before the first."""
    due_at: float = float("inf")
    """When the next heartbeat is due, while the member is in the group."""
    polled_at: float = float("-inf")

    def move(self, trigger: MembershipTrigger) -> None:
        """Set the next state. Raises `TransitionError` where the state has no such transition."""
        self.state = STATES.following(self.state, trigger)

    # The hooks of the protocols.

    def forget(self) -> None:
        """End the membership; the program keeps its partitions."""
        self.epoch, self.target = JOIN_EPOCH, self.nothing
        self.forget_sent()

    def forget_sent(self) -> None:
        """Have the next heartbeat contain the fields that are sent only when they change."""
        self.sent = None

    def record_sent(self, request: Any) -> None:
        """Record the content of a heartbeat as known to the coordinator."""
        self.sent = self.nothing if request.member_epoch == JOIN_EPOCH else self.owned

    @abstractmethod
    def read(self, response: Any) -> Assignment | None:
        """Read the protocol's own fields of a response without an error; return the target assignment, if any."""


Membership = TypeVar("Membership", bound=HeartbeatMembership[Any])
Rules = TypeVar("Rules", bound=MemberRules)
Decisions = Mapping[type, Callable[[Any, Any, float], Remedy]]
"""The decision function of each event, which changes a copy of the membership."""


class HeartbeatMember(ABC, Generic[Membership, Rules]):
    """One member. Times are seconds of any monotonic clock."""

    def __init__(self, rules: Rules, membership: Membership, decisions: Decisions) -> None:
        self.rules = rules
        self.membership = membership
        self._decisions = decisions

    def handle(self, event: Any, now: float) -> Outcome[Membership]:
        """Decide about an event at `now`. Raises `TransitionError` where the event cannot happen in the state."""
        after = copy(self.membership)
        remedy = self._decisions[type(event)](after, event, now)
        return Outcome(after, remedy)

    def apply(self, membership: Membership) -> None:
        """Make the membership that `handle` returned the current one."""
        self.membership = membership

    @property
    def state(self) -> MembershipState:
        """Return the state of the member."""
        return self.membership.state

    @property
    def member_id(self) -> str:
        """Return the member id, which the member generates unless the coordinator assigns one."""
        return self.membership.member_id

    @property
    def epoch(self) -> int:
        """Return the epoch of the coordinator's last response."""
        return self.membership.epoch

    def has_stalled(self, now: float) -> bool:
        """Whether the program has not polled for longer than max.poll.interval.ms."""
        return self.stalls_at() < now

    def stalls_at(self) -> float:
        """Return the time at which `has_stalled` becomes true."""
        alive = self.state in (*IN_GROUP, MembershipState.FENCED)
        return self.membership.polled_at + self.rules.max_poll_interval_s if alive else float("inf")

    def heartbeat_at(self) -> float:
        """Return when the next heartbeat is due."""
        return self.membership.due_at if self.state in IN_GROUP else float("inf")

    @abstractmethod
    def build_heartbeat(self) -> HeartbeatRequest:
        """Build a heartbeat: all fields when joining, else those that have changed since the last one."""

    @abstractmethod
    def build_leave(self) -> HeartbeatRequest:
        """Build the heartbeat that leaves the group."""


def join(it: HeartbeatMembership[Any], now: float) -> None:
    """Join the group at the next heartbeat, which is due now."""
    it.polled_at, it.due_at = now, now
    if it.state in OUT_OF_GROUP:
        it.move(MembershipTrigger.WANTS_IN)


def complete_step(it: HeartbeatMembership[Any], step: RebalanceStep, now: float) -> None:
    """Follow a rebalance step of the program. Its state may have changed during the step."""
    if it.state is MembershipState.FENCED and step.assigned is None:
        it.move(MembershipTrigger.GAVE_UP)
    elif it.state is MembershipState.RECONCILING and step.assigned is not None:
        it.move(MembershipTrigger.RECONCILED)
    it.due_at = now


def _polled(it: HeartbeatMembership[Any], _event: Polled, now: float) -> Remedy:
    it.polled_at = now
    if it.state is MembershipState.STALE:  # The member had left after max.poll.interval.ms.
        it.move(MembershipTrigger.WANTS_IN)
    return Remedy.NONE


def _left(it: HeartbeatMembership[Any], _event: Left, _now: float) -> Remedy:
    if it.state is not MembershipState.UNSUBSCRIBED:
        it.move(MembershipTrigger.LEFT)
    it.forget()
    it.owned = it.nothing
    return Remedy.NONE


def _stalled(it: HeartbeatMembership[Any], _event: Stalled, _now: float) -> Remedy:
    it.move(MembershipTrigger.STALLED)
    it.forget()
    return Remedy.NONE


def _heartbeat_sent(it: HeartbeatMembership[Any], event: HeartbeatSent, now: float) -> Remedy:
    it.record_sent(event.request)
    it.due_at = now + it.interval_s if it.interval_s else float("inf")
    if it.state is MembershipState.ACKNOWLEDGING:
        it.move(MembershipTrigger.ACKNOWLEDGED)
        if it.target != it.owned:
            it.move(MembershipTrigger.GOT_TARGET)
    return Remedy.NONE


def _heartbeat_lost(it: HeartbeatMembership[Any], _event: HeartbeatLost, now: float) -> Remedy:
    it.forget_sent()
    it.due_at = now
    return Remedy.NONE


def _heartbeat_completed(it: HeartbeatMembership[Any], event: HeartbeatCompleted, now: float) -> Remedy:
    response = event.response
    if it.state not in IN_GROUP:
        return Remedy.NONE
    if response.error_code:
        return _rejected(it, response.error_code, now)
    if event.epoch == JOIN_EPOCH and it.epoch != JOIN_EPOCH:
        return Remedy.NONE
    it.epoch = response.member_epoch
    it.interval_s = response.heartbeat_interval_ms / 1000
    it.due_at = min(it.due_at, now + it.interval_s)
    target = it.read(response)
    if target is not None:
        it.target = target
        if target != it.owned:
            it.move(MembershipTrigger.GOT_TARGET)
        elif it.state in (MembershipState.JOINING, MembershipState.RECONCILING):
            it.move(MembershipTrigger.HAS_TARGET)
    return Remedy.NONE


def _commit_refused(it: HeartbeatMembership[Any], event: CommitRefused, _now: float) -> Remedy:
    if event.code in (*EXPELLED, ErrorCode.STALE_MEMBER_EPOCH) and event.epoch == it.epoch:
        it.due_at = float("-inf")  # The next heartbeat reports the member's state.
    return Remedy.NONE


def _rejected(it: HeartbeatMembership[Any], code: int, now: float) -> Remedy:
    if code in SEARCH or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        it.forget_sent()
        it.due_at = now
        return Remedy.SEARCH if code in SEARCH else Remedy.WAIT
    it.forget()
    if code in EXPELLED:
        it.due_at = now
        it.move(MembershipTrigger.WAS_FENCED)
        return Remedy.NONE
    it.move(MembershipTrigger.REFUSED)
    return Remedy.FAIL


COMMON_DECISIONS: Decisions = {
    CommitRefused: _commit_refused,
    HeartbeatCompleted: _heartbeat_completed,
    HeartbeatLost: _heartbeat_lost,
    HeartbeatSent: _heartbeat_sent,
    Left: _left,
    Polled: _polled,
    Stalled: _stalled,
}
"""The decisions of both protocols."""
