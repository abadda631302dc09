"""A member of a group of the classic protocol: its states, generations and heartbeats.

Owns the states of a member and their transitions. Must not know assignors, or fields of requests. The states are
those of Kafka's `AbstractCoordinator`, with the two rebalance steps of the program as states of their own.
`pybroker.client.membership.machine` defines the interface.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from enum import Enum, auto
from typing import Any

import msgspec

from pybroker.client.membership.classic_events import (
    HeartbeatCompleted,
    HeartbeatSent,
    JoinCompleted,
    Partitions,
    RejoinWanted,
    StepDone,
    Subscribed,
    SyncCompleted,
)
from pybroker.client.membership.events import CommitRefused, Left, Polled
from pybroker.client.membership.machine import Outcome
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.machine.transitions import Transitions
from pybroker.protocol.errors import ErrorCode

NO_GENERATION = -1
NOTHING: Partitions = frozenset()


class ClassicState(Enum):
    """The state of a member."""

    OUTSIDE = auto()
    """Not in the group, and not joining."""
    PREPARING = auto()
    """The program revokes the partitions that it must not keep during the rebalance."""
    JOINING = auto()
    SYNCING = auto()
    ASSIGNING = auto()
    """The program takes over its assigned partitions."""
    STABLE = auto()
    FAILED = auto()
    """After an error that no retry resolves."""


class ClassicTrigger(Enum):
    """A trigger of a transition."""

    WANTS_IN = auto()
    PREPARED = auto()
    JOINED = auto()
    SYNCED = auto()
    TURNED_AWAY = auto()
    """The rebalance continues without this SyncGroup response: join again."""
    TOOK_PARTITIONS = auto()
    HAS_TO_REJOIN = auto()
    LOST_MEMBERSHIP = auto()
    LEFT = auto()
    REFUSED = auto()


_S, _T = ClassicState, ClassicTrigger
_IN_GROUP = (_S.PREPARING, _S.JOINING, _S.SYNCING, _S.ASSIGNING, _S.STABLE)

TRANSITIONS: dict[tuple[ClassicState, ClassicTrigger], ClassicState] = {
    (_S.OUTSIDE, _T.WANTS_IN): _S.PREPARING,
    (_S.FAILED, _T.WANTS_IN): _S.PREPARING,
    (_S.PREPARING, _T.PREPARED): _S.JOINING,
    (_S.JOINING, _T.JOINED): _S.SYNCING,
    (_S.SYNCING, _T.SYNCED): _S.ASSIGNING,
    (_S.SYNCING, _T.TURNED_AWAY): _S.JOINING,
    (_S.ASSIGNING, _T.TOOK_PARTITIONS): _S.STABLE,
    (_S.STABLE, _T.HAS_TO_REJOIN): _S.PREPARING,
    **{(state, _T.LOST_MEMBERSHIP): _S.PREPARING for state in _IN_GROUP},
    **{(state, _T.LEFT): _S.OUTSIDE for state in (*_IN_GROUP, _S.FAILED)},
    **{(state, _T.REFUSED): _S.FAILED for state in _IN_GROUP},
}
_TABLE = Transitions("ClassicMember", _S.OUTSIDE, TRANSITIONS)

_BEATING = (_S.PREPARING, _S.SYNCING, _S.ASSIGNING, _S.STABLE)
"""States with heartbeats. In JOINING, the JoinGroup request keeps the member alive."""
_SEARCH = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
_EXPELLED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}


class ClassicRules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a member."""

    session_timeout_s: float
    heartbeat_interval_s: float
    max_poll_interval_s: float
    cooperative: bool


class ClassicMembership(msgspec.Struct):
    """The state of a member. A decision changes a copy; a msgspec struct is the cheapest to copy."""

    rules: ClassicRules
    state: ClassicState = ClassicState.OUTSIDE
    member_id: str = ""
    generation: int = NO_GENERATION
    assignor: str | None = None
    """The protocol (assignor) of the last JoinGroup response."""
    owned: Partitions = NOTHING
    """The partitions of the program. Only rebalance steps change them."""
    reason: str = ""
    """The reason for joining, for the coordinator's log (KIP-800)."""
    keeps: Partitions | None = None
    """Partitions outside of it are revoked before joining, also in a cooperative group; None: all are kept."""
    lost: bool = False
    """Whether `owned` may be assigned to another member."""
    rejoin: bool = False
    """Whether another rebalance must follow the current one, because something changed meanwhile."""
    assigned: Partitions = NOTHING
    polled_at: float = float("-inf")
    responded_at: float = float("-inf")
    heartbeat_at: float = float("inf")

    def move(self, trigger: ClassicTrigger) -> None:
        """Set the next state. Raises `TransitionError` where the state has no such transition."""
        self.state = _TABLE.following(self.state, trigger)

    def forget(self) -> None:
        """End the membership: the program has lost its partitions."""
        self.member_id, self.generation = "", NO_GENERATION
        self.heartbeat_at = float("inf")
        self.lost = bool(self.owned)


class ClassicMember:
    """One member. Times are seconds of any monotonic clock."""

    def __init__(self, rules: ClassicRules) -> None:
        self.membership = ClassicMembership(rules)

    def handle(self, event: Any, now: float) -> Outcome[ClassicMembership]:
        """Decide about an event at `now`. An event that does not fit the state (a late response) has no effect."""
        after = copy(self.membership)
        remedy = DECISIONS[type(event)](after, event, now)
        return Outcome(after, remedy)

    def apply(self, membership: ClassicMembership) -> None:
        """Make the membership that `handle` returned the current one."""
        self.membership = membership

    @property
    def state(self) -> ClassicState:
        """Return the state of the member."""
        return self.membership.state

    @property
    def member_id(self) -> str:
        """Return the member id from the coordinator; empty before the first JoinGroup response."""
        return self.membership.member_id

    @property
    def generation(self) -> int:
        """Return the generation of the member."""
        return self.membership.generation

    @property
    def owned(self) -> Partitions:
        """Return the partitions of the program."""
        return self.membership.owned

    @property
    def reason(self) -> str:
        """Return the reason for joining."""
        return self.membership.reason

    def rebalance_step(self) -> RebalanceStep | None:
        """Return the step that the program must do now."""
        it = self.membership
        if it.state is ClassicState.PREPARING:
            if it.lost:
                return RebalanceStep(lost=it.owned)
            kept = NOTHING
            if it.rules.cooperative:
                kept = it.owned if it.keeps is None else it.owned & it.keeps
            return RebalanceStep(revoked=it.owned - kept)
        if it.state is ClassicState.ASSIGNING:
            return RebalanceStep(revoked=it.owned - it.assigned, assigned=it.assigned - it.owned)
        return None

    def has_stalled(self, now: float) -> bool:
        """Whether the program has not polled for longer than max.poll.interval.ms."""
        return self.stalls_at() < now

    def stalls_at(self) -> float:
        """Return the time at which `has_stalled` becomes true."""
        it = self.membership
        return it.polled_at + it.rules.max_poll_interval_s if it.state in _IN_GROUP else float("inf")

    def heartbeat_at(self) -> float:
        """Return when the next heartbeat is due; never while a JoinGroup is in flight, which replaces it."""
        beats = self.membership.generation != NO_GENERATION and self.membership.state in _BEATING
        return self.membership.heartbeat_at if beats else float("inf")

    def is_unanswered(self, now: float) -> bool:
        """Whether the coordinator has not responded for a session timeout; then it is searched again."""
        silent_s = now - self.membership.responded_at
        return self.heartbeat_at() != float("inf") and silent_s > self.membership.rules.session_timeout_s


def _polled(it: ClassicMembership, _event: Polled, now: float) -> Remedy:
    it.polled_at = now
    return Remedy.NONE


def _subscribed(it: ClassicMembership, event: Subscribed, now: float) -> Remedy:
    it.keeps, it.polled_at = event.keeps, now
    if it.state in (ClassicState.OUTSIDE, ClassicState.FAILED):
        it.reason = event.reason
        it.move(ClassicTrigger.WANTS_IN)
    else:
        _rejoin(it, event.reason)
    return Remedy.NONE


def _rejoin_wanted(it: ClassicMembership, event: RejoinWanted, _now: float) -> Remedy:
    _rejoin(it, event.reason)
    return Remedy.NONE


def _step_done(it: ClassicMembership, event: StepDone, _now: float) -> Remedy:
    step = event.step
    it.owned = (it.owned - step.lost - step.revoked) | (step.assigned or NOTHING)
    if it.state is not ClassicState.ASSIGNING and step.assigned is not None:
        it.lost = bool(it.owned)  # The membership was lost while the program took over its assignment.
    elif it.state is ClassicState.PREPARING:
        it.lost, it.keeps = False, None
        it.move(ClassicTrigger.PREPARED)
    elif it.state is ClassicState.ASSIGNING:
        it.move(ClassicTrigger.TOOK_PARTITIONS)
        if step.revoked:
            _rejoin(it, "need to revoke partitions and re-join")
        elif it.rejoin:
            _rejoin(it, it.reason)
        it.rejoin = False
    return Remedy.NONE


def _left(it: ClassicMembership, _event: Left, _now: float) -> Remedy:
    if it.state is not ClassicState.OUTSIDE:
        it.move(ClassicTrigger.LEFT)
    it.forget()
    return Remedy.NONE


def _heartbeat_sent(it: ClassicMembership, _event: HeartbeatSent, now: float) -> Remedy:
    it.heartbeat_at = now + it.rules.heartbeat_interval_s
    return Remedy.NONE


def _heartbeat_completed(it: ClassicMembership, event: HeartbeatCompleted, now: float) -> Remedy:
    if event.generation != it.generation or it.state not in _IN_GROUP:
        return Remedy.NONE
    if event.code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        it.responded_at = now
        if event.code == ErrorCode.REBALANCE_IN_PROGRESS and it.state is ClassicState.STABLE:
            _rejoin(it, "group is already rebalancing")
        return Remedy.NONE
    return _refused(it, event.code)


def _join_completed(it: ClassicMembership, event: JoinCompleted, now: float) -> Remedy:
    if it.state is not ClassicState.JOINING:
        return Remedy.NONE
    if event.code == ErrorCode.NONE:
        it.member_id, it.generation, it.assignor = event.member_id, event.generation, event.assignor
        it.responded_at, it.heartbeat_at = now, now + it.rules.heartbeat_interval_s
        it.rejoin = False
        it.move(ClassicTrigger.JOINED)
        return Remedy.NONE
    if event.code == ErrorCode.MEMBER_ID_REQUIRED:
        it.member_id = event.member_id
        return Remedy.NONE
    if event.code == ErrorCode.REBALANCE_IN_PROGRESS:
        return Remedy.WAIT
    return _refused(it, event.code)


def _sync_completed(it: ClassicMembership, event: SyncCompleted, now: float) -> Remedy:
    if it.state is not ClassicState.SYNCING or event.generation != it.generation:
        return Remedy.NONE
    if event.code == ErrorCode.NONE:
        it.responded_at, it.assigned = now, event.assigned
        it.move(ClassicTrigger.SYNCED)
        return Remedy.NONE
    if event.code not in _EXPELLED and event.code != ErrorCode.FENCED_INSTANCE_ID:
        it.move(ClassicTrigger.TURNED_AWAY)
    return Remedy.NONE if event.code == ErrorCode.REBALANCE_IN_PROGRESS else _refused(it, event.code)


def _commit_refused(it: ClassicMembership, event: CommitRefused, _now: float) -> Remedy:
    if event.epoch == it.generation != NO_GENERATION:
        if event.code in _EXPELLED or event.code == ErrorCode.FENCED_INSTANCE_ID:
            return _refused(it, event.code)
        if event.code == ErrorCode.REBALANCE_IN_PROGRESS:
            _rejoin(it, "offset commit failed since group is already rebalancing")
    return Remedy.NONE


def _rejoin(it: ClassicMembership, reason: str) -> None:
    if it.state is ClassicState.STABLE:
        it.reason = reason
        it.move(ClassicTrigger.HAS_TO_REJOIN)
    elif it.state in _IN_GROUP:
        it.rejoin, it.reason = True, reason


def _refused(it: ClassicMembership, code: int) -> Remedy:
    if code in _SEARCH:
        return Remedy.SEARCH
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return Remedy.WAIT
    if code in _EXPELLED:
        member_id = it.member_id if code == ErrorCode.ILLEGAL_GENERATION else ""
        it.forget()
        it.member_id = member_id
        it.reason = f"encountered {ErrorCode(code).name} from the coordinator"
        it.move(ClassicTrigger.LOST_MEMBERSHIP)
        return Remedy.NONE
    it.forget()
    it.move(ClassicTrigger.REFUSED)
    return Remedy.FAIL


DECISIONS: dict[type, Callable[[ClassicMembership, Any, float], Remedy]] = {
    CommitRefused: _commit_refused,
    HeartbeatCompleted: _heartbeat_completed,
    HeartbeatSent: _heartbeat_sent,
    JoinCompleted: _join_completed,
    Left: _left,
    Polled: _polled,
    RejoinWanted: _rejoin_wanted,
    StepDone: _step_done,
    Subscribed: _subscribed,
    SyncCompleted: _sync_completed,
}
"""The decision function of each event, which changes a copy of the membership."""
