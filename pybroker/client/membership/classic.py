"""A member of a group of the classic protocol: join, sync, heartbeat, and the generations between.

Owns the states of a member and what leads from one to the next. Knows no assignor, and no request's fields. The states
are those of Kafka's `AbstractCoordinator`, with the two rebalance steps of the program named.
"""

from __future__ import annotations

from enum import Enum, auto

from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.topics import TopicPartition
from pybroker.machine.transitions import Transitions
from pybroker.protocol.errors import ErrorCode

Partitions = frozenset[TopicPartition]
NO_GENERATION = -1
NOTHING: Partitions = frozenset()


class ClassicState(Enum):
    """Where a member is."""

    OUTSIDE = auto()
    """Not in the group, and not on the way into it."""
    PREPARING = auto()
    """The program gives up what it may not keep over the rebalance."""
    JOINING = auto()
    SYNCING = auto()
    ASSIGNING = auto()
    """The program takes what it was assigned."""
    STABLE = auto()
    FAILED = auto()
    """A refusal that no retry mends."""


class ClassicTrigger(Enum):
    """What happens to a member."""

    WANTS_IN = auto()
    PREPARED = auto()
    JOINED = auto()
    SYNCED = auto()
    TURNED_AWAY = auto()
    """The rebalance goes on without this answer: join again."""
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

_SEARCH = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
_EXPELLED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}


class ClassicMember:
    """One member. Times are seconds of any clock that only goes forward."""

    def __init__(
        self, *, session_timeout_s: float, heartbeat_interval_s: float, max_poll_interval_s: float, cooperative: bool
    ) -> None:
        self.state = ClassicState.OUTSIDE
        self.member_id = ""
        self.generation = NO_GENERATION
        self.assignor: str | None = None
        """The protocol that the group chose last."""
        self.owned: Partitions = NOTHING
        """What the program has. Changes only by rebalance steps."""
        self.reason = ""
        """Why it joins, for the coordinator's log (KIP-800)."""
        self._session_timeout_s = session_timeout_s
        self._heartbeat_interval_s = heartbeat_interval_s
        self._max_poll_interval_s = max_poll_interval_s
        self._cooperative = cooperative
        self._keeps: Partitions | None = None
        """What else it has is given up before joining, also in a cooperative group; None: it keeps all."""
        self._lost = False
        self._rejoin = False
        """Something changed while a rebalance was under way: another one follows it."""
        self._assigned: Partitions = NOTHING
        self._polled_at = float("-inf")
        self._answered_at = float("-inf")
        self._heartbeat_at = float("inf")

    # ------------------------------------------------------------------------------------------------- the program

    def step_poll(self, now: float) -> None:
        """The program is alive."""
        self._polled_at = now

    def step_subscribed(self, keeps: Partitions, reason: str, now: float) -> None:
        """The program wants in, or wants something else; `keeps` is what it has and still wants."""
        self._keeps = keeps
        self.step_poll(now)
        if self.state in (ClassicState.OUTSIDE, ClassicState.FAILED):
            self.reason = reason
            self._move(ClassicTrigger.WANTS_IN)
        else:
            self.step_rejoin(reason)

    def step_rejoin(self, reason: str) -> None:
        """The assignment no longer fits the topics: ask for another."""
        if self.state is ClassicState.STABLE:
            self.reason = reason
            self._move(ClassicTrigger.HAS_TO_REJOIN)
        elif self.state in _IN_GROUP:
            self._rejoin, self.reason = True, reason

    def rebalance_step(self) -> RebalanceStep | None:
        """What the program has to do now."""
        if self.state is ClassicState.PREPARING:
            if self._lost:
                return RebalanceStep(lost=self.owned)
            kept = self.owned & (self.owned if self._keeps is None else self._keeps) if self._cooperative else NOTHING
            return RebalanceStep(revoked=self.owned - kept)
        if self.state is ClassicState.ASSIGNING:
            return RebalanceStep(revoked=self.owned - self._assigned, assigned=self._assigned - self.owned)
        return None

    def complete_step(self, step: RebalanceStep) -> None:
        """The program has done it."""
        self.owned = (self.owned - step.lost - step.revoked) | (step.assigned or NOTHING)
        if self.state is not ClassicState.ASSIGNING and step.assigned is not None:
            self._lost = bool(self.owned)  # it lost its membership while the program took what it was assigned
        elif self.state is ClassicState.PREPARING:
            self._lost, self._keeps = False, None
            self._move(ClassicTrigger.PREPARED)
        elif self.state is ClassicState.ASSIGNING:
            self._move(ClassicTrigger.TOOK_PARTITIONS)
            if step.revoked:
                self.step_rejoin("need to revoke partitions and re-join")
            elif self._rejoin:
                self.step_rejoin(self.reason)
            self._rejoin = False

    def step_left(self) -> None:
        """The program leaves, or was silent for too long. What it has, it has lost, unless it gave it up before."""
        if self.state is not ClassicState.OUTSIDE:
            self._move(ClassicTrigger.LEFT)
        self._forget_membership()

    # ----------------------------------------------------------------------------------------------------- the clock

    def has_stalled(self, now: float) -> bool:
        """Whether the program was silent for longer than max.poll.interval.ms."""
        return self.state in _IN_GROUP and now - self._polled_at > self._max_poll_interval_s

    def stalls_at(self) -> float:
        """When it will have been."""
        return self._polled_at + self._max_poll_interval_s if self.state in _IN_GROUP else float("inf")

    def heartbeat_at(self) -> float:
        """When the next heartbeat is due; never, while a JoinGroup says the same."""
        beats = self.generation != NO_GENERATION and self.state in (
            ClassicState.PREPARING,
            ClassicState.SYNCING,
            ClassicState.ASSIGNING,
            ClassicState.STABLE,
        )
        return self._heartbeat_at if beats else float("inf")

    def is_unanswered(self, now: float) -> bool:
        """Whether the coordinator was silent for a whole session: it is looked for again."""
        return self.heartbeat_at() != float("inf") and now - self._answered_at > self._session_timeout_s

    # ----------------------------------------------------------------------------------------------------- answers

    def step_heartbeat_sent(self, now: float) -> None:
        """The next is due an interval later."""
        self._heartbeat_at = now + self._heartbeat_interval_s

    def step_heartbeat(self, code: int, generation: int, now: float) -> Remedy:
        """An answer to a heartbeat that named `generation`."""
        if generation != self.generation or self.state not in _IN_GROUP:
            return Remedy.NONE
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._answered_at = now
            if code == ErrorCode.REBALANCE_IN_PROGRESS and self.state is ClassicState.STABLE:
                self.step_rejoin("group is already rebalancing")
            return Remedy.NONE
        return self._refused(code)

    def step_joined(self, code: int, member_id: str, generation: int, assignor: str | None, now: float) -> Remedy:
        """An answer to JoinGroup."""
        if self.state is not ClassicState.JOINING:
            return Remedy.NONE
        if code == ErrorCode.NONE:
            self.member_id, self.generation, self.assignor = member_id, generation, assignor
            self._answered_at, self._heartbeat_at = now, now + self._heartbeat_interval_s
            self._rejoin = False
            self._move(ClassicTrigger.JOINED)
            return Remedy.NONE
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
            return Remedy.NONE
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            return Remedy.WAIT
        return self._refused(code)

    def step_synced(self, code: int, generation: int, assigned: Partitions, now: float) -> Remedy:
        """An answer to SyncGroup of `generation`."""
        if self.state is not ClassicState.SYNCING or generation != self.generation:
            return Remedy.NONE
        if code == ErrorCode.NONE:
            self._answered_at, self._assigned = now, assigned
            self._move(ClassicTrigger.SYNCED)
            return Remedy.NONE
        if code not in _EXPELLED and code != ErrorCode.FENCED_INSTANCE_ID:
            self._move(ClassicTrigger.TURNED_AWAY)
        return Remedy.NONE if code == ErrorCode.REBALANCE_IN_PROGRESS else self._refused(code)

    def step_commit_refused(self, code: int, generation: int) -> None:
        """An OffsetCommit of `generation` was refused as a member's."""
        if generation == self.generation and generation != NO_GENERATION:
            if code in _EXPELLED or code == ErrorCode.FENCED_INSTANCE_ID:
                self._refused(code)
            elif code == ErrorCode.REBALANCE_IN_PROGRESS:
                self.step_rejoin("offset commit failed since group is already rebalancing")

    def _refused(self, code: int) -> Remedy:
        if code in _SEARCH:
            return Remedy.SEARCH
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return Remedy.WAIT
        if code in _EXPELLED:
            keeps_id = code == ErrorCode.ILLEGAL_GENERATION
            member_id = self.member_id
            self._forget_membership()
            self.member_id = member_id if keeps_id else ""
            self.reason = f"encountered {ErrorCode(code).name} from the coordinator"
            self._move(ClassicTrigger.LOST_MEMBERSHIP)
            return Remedy.NONE
        self._forget_membership()
        self._move(ClassicTrigger.REFUSED)
        return Remedy.FAIL

    def _forget_membership(self) -> None:
        self.member_id, self.generation = "", NO_GENERATION
        self._heartbeat_at = float("inf")
        self._lost = bool(self.owned)

    def _move(self, trigger: ClassicTrigger) -> None:
        self.state = _TABLE.following(self.state, trigger)
