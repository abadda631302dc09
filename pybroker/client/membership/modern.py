"""A member of a group of the protocol of KIP-848: heartbeats carry wishes there and assignments back.

Owns the states of a member, those of Kafka's client, and what a heartbeat says. Topics are ids here; the driver
resolves them, since only it can ask for metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.topics import TopicPartition
from pybroker.machine.transitions import Transitions
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_FOR_A_WHILE_EPOCH = 0, -1, -2
NOTHING: frozenset[TopicPartition] = frozenset()

ById = dict[bytes, frozenset[int]]
"""Partitions by topic id."""


class ModernState(Enum):
    """Where a member is."""

    UNSUBSCRIBED = auto()
    JOINING = auto()
    RECONCILING = auto()
    """The program gives up and takes partitions, towards the target."""
    ACKNOWLEDGING = auto()
    """The next heartbeat reports what the program has now."""
    STABLE = auto()
    FENCED = auto()
    """The program gives up what it had, then joins again."""
    STALE = auto()
    """Left because the program was silent for too long; joins again when the program polls or subscribes."""
    FATAL = auto()


class ModernTrigger(Enum):
    """What happens to a member."""

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


_S, _T = ModernState, ModernTrigger
_IN_GROUP = (_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE)

TRANSITIONS: dict[tuple[ModernState, ModernTrigger], ModernState] = {
    (_S.UNSUBSCRIBED, _T.WANTS_IN): _S.JOINING,
    (_S.FATAL, _T.WANTS_IN): _S.JOINING,
    (_S.STALE, _T.WANTS_IN): _S.FENCED,
    **{(state, _T.GOT_TARGET): _S.RECONCILING for state in _IN_GROUP},
    (_S.JOINING, _T.HAS_TARGET): _S.STABLE,
    (_S.RECONCILING, _T.HAS_TARGET): _S.STABLE,
    (_S.RECONCILING, _T.RECONCILED): _S.ACKNOWLEDGING,
    (_S.ACKNOWLEDGING, _T.ACKNOWLEDGED): _S.STABLE,
    **{(state, _T.WAS_FENCED): _S.FENCED for state in _IN_GROUP},
    (_S.FENCED, _T.GAVE_UP): _S.JOINING,
    **{(state, _T.STALLED): _S.STALE for state in (*_IN_GROUP, _S.FENCED)},
    **{(state, _T.LEFT): _S.UNSUBSCRIBED for state in (*_IN_GROUP, _S.FENCED, _S.STALE, _S.FATAL)},
    **{(state, _T.REFUSED): _S.FATAL for state in (*_IN_GROUP, _S.FENCED)},
}
_TABLE = Transitions("ModernMember", _S.UNSUBSCRIBED, TRANSITIONS)

_SEARCH = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
_EXPELLED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a member reports of itself, and again when it changes."""

    topics: tuple[str, ...] = ()
    regex: str | None = None
    assignor: str | None = None
    rack: str | None = None


class ModernMember:
    """One member. Times are seconds of any clock that only goes forward."""

    def __init__(self, *, group_id: str, member_id: str, instance_id: str | None, max_poll_interval_s: float) -> None:
        self.state = ModernState.UNSUBSCRIBED
        self.group_id, self.member_id, self.instance_id = group_id, member_id, instance_id
        self.epoch = JOIN_EPOCH
        self.owned: frozenset[TopicPartition] = NOTHING
        """What the program has. Changes only by rebalance steps."""
        self.target: ById = {}
        """What the group wants it to have."""
        self._held: ById = {}
        """What it has, by topic id, as it is acknowledged."""
        self._wishes = Wishes()
        self._sent: Wishes | None = None
        """The wishes that the coordinator knows; None before it knows any."""
        self._sent_held: ById | None = None
        self._max_poll_interval_s = max_poll_interval_s
        self._interval_s = 0.0
        self._due_at = float("inf")
        self._polled_at = float("-inf")

    # ------------------------------------------------------------------------------------------------- the program

    def step_poll(self, now: float) -> None:
        """The program is alive; one that had been given up as silent joins again."""
        self._polled_at = now
        if self.state is ModernState.STALE:
            self._move(ModernTrigger.WANTS_IN)

    def step_subscribed(self, wishes: Wishes, now: float) -> None:
        """The program wants in, or wants something else."""
        self._wishes = wishes
        self.step_poll(now)
        if self.state in (ModernState.UNSUBSCRIBED, ModernState.FATAL):
            self._move(ModernTrigger.WANTS_IN)
        self._due_at = now

    def rebalance_step(self, names: Mapping[bytes, str]) -> RebalanceStep | None:
        """What the program has to do now; topics whose names are not known yet wait."""
        if self.state is ModernState.FENCED:
            return RebalanceStep(lost=self.owned)
        if self.state is ModernState.RECONCILING:
            wanted = _named(self.target, names)
            if wanted != self.owned or self._held != _resolvable(self.target, names):
                return RebalanceStep(revoked=self.owned - wanted, assigned=wanted - self.owned)
        return None

    def complete_step(self, step: RebalanceStep, names: Mapping[bytes, str], now: float) -> None:
        """The program has done it."""
        self.owned = (self.owned - step.lost - step.revoked) | (step.assigned or NOTHING)
        if self.state is ModernState.FENCED:
            self._move(ModernTrigger.GAVE_UP)
        elif self.state is ModernState.RECONCILING and step.assigned is not None:
            ids = {name: topic_id for topic_id, name in names.items()}
            self._held = _by_id(self.owned, ids)
            self._move(ModernTrigger.RECONCILED)
        self._due_at = now

    def step_left(self) -> None:
        """The program leaves. What it has it has lost, unless it gave it up before."""
        if self.state is not ModernState.UNSUBSCRIBED:
            self._move(ModernTrigger.LEFT)
        self._reset()

    def step_stalled(self) -> None:
        """The program was silent for too long, and the coordinator was sent so."""
        self._move(ModernTrigger.STALLED)
        self._reset()

    # ----------------------------------------------------------------------------------------------------- the clock

    def has_stalled(self, now: float) -> bool:
        """Whether the program was silent for longer than max.poll.interval.ms."""
        return self.stalls_at() < now

    def stalls_at(self) -> float:
        """When it will have been."""
        alive = self.state in (*_IN_GROUP, ModernState.FENCED)
        return self._polled_at + self._max_poll_interval_s if alive else float("inf")

    def heartbeat_at(self) -> float:
        """When the next heartbeat is due."""
        return self._due_at if self.state in _IN_GROUP else float("inf")

    # --------------------------------------------------------------------------------------------------- heartbeats

    def build_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """Everything when joining, else what has changed since the coordinator was sent."""
        joins = self.epoch == JOIN_EPOCH
        wishes, sent = self._wishes, None if joins else self._sent
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if sent is None:
            request.rebalance_timeout_ms = round(self._max_poll_interval_s * 1000)
            request.rack_id = wishes.rack
            request.server_assignor = wishes.assignor
        if sent is None or (wishes.topics, wishes.regex) != (sent.topics, sent.regex):
            request.subscribed_topic_names = list(wishes.topics)
            # An empty expression takes an earlier one back.
            request.subscribed_topic_regex = wishes.regex or ("" if sent is not None and sent.regex else None)
        if joins:
            request.topic_partitions = []
        elif self._held != self._sent_held:
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_id, partitions=sorted(held)) for topic_id, held in self._held.items()
            ]
        return request

    def build_leave(self) -> ConsumerGroupHeartbeatRequest:
        """A static member leaves for a while: its place is kept for the session timeout."""
        epoch = LEAVE_EPOCH if self.instance_id is None else LEAVE_FOR_A_WHILE_EPOCH
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )

    def step_heartbeat_sent(self, request: ConsumerGroupHeartbeatRequest, now: float) -> None:
        """What it says is known from now on, unless it fails."""
        self._sent = self._wishes
        self._sent_held = {} if request.member_epoch == JOIN_EPOCH else self._held
        self._due_at = now + self._interval_s if self._interval_s else float("inf")
        if self.state is ModernState.ACKNOWLEDGING:
            self._move(ModernTrigger.ACKNOWLEDGED)
            if self.target != self._held:
                self._move(ModernTrigger.GOT_TARGET)

    def step_heartbeat_lost(self, now: float) -> None:
        """No answer came: everything is sent again."""
        self._sent = self._sent_held = None
        self._due_at = now

    def step_heartbeat(self, epoch: int, answer: ConsumerGroupHeartbeatResponse, now: float) -> Remedy:
        """An answer to a heartbeat that named `epoch`."""
        if self.state not in _IN_GROUP:
            return Remedy.NONE
        if answer.error_code:
            return self._refused(answer.error_code, now)
        if epoch == JOIN_EPOCH and self.epoch != JOIN_EPOCH:
            return Remedy.NONE
        self.epoch = answer.member_epoch
        self._interval_s = answer.heartbeat_interval_ms / 1000
        self._due_at = min(self._due_at, now + self._interval_s)
        if answer.assignment is not None:
            sent = answer.assignment.topic_partitions
            self.target = {t.topic_id: frozenset(t.partitions) for t in sent if t.partitions}
            if self.target != self._held:
                self._move(ModernTrigger.GOT_TARGET)
            elif self.state in (ModernState.JOINING, ModernState.RECONCILING):
                self._move(ModernTrigger.HAS_TARGET)
        return Remedy.NONE

    def step_commit_refused(self, code: int, epoch: int) -> None:
        """An OffsetCommit of `epoch` was refused as a member's: the next heartbeat shows where the member stands."""
        if code in (*_EXPELLED, ErrorCode.STALE_MEMBER_EPOCH) and epoch == self.epoch:
            self._due_at = float("-inf")

    def _refused(self, code: int, now: float) -> Remedy:
        if code in _SEARCH or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.step_heartbeat_lost(now)
            return Remedy.SEARCH if code in _SEARCH else Remedy.WAIT
        if code in _EXPELLED:
            self._reset()
            self._due_at = now
            self._move(ModernTrigger.WAS_FENCED)
            return Remedy.NONE
        self._reset()
        self._move(ModernTrigger.REFUSED)
        return Remedy.FAIL

    def _reset(self) -> None:
        self.epoch, self.target, self._held = JOIN_EPOCH, {}, {}
        self._sent = self._sent_held = None

    def _move(self, trigger: ModernTrigger) -> None:
        self.state = _TABLE.following(self.state, trigger)


def _resolvable(target: ById, names: Mapping[bytes, str]) -> ById:
    return {topic_id: partitions for topic_id, partitions in target.items() if topic_id in names}


def _named(target: ById, names: Mapping[bytes, str]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(names[t], index) for t, held in _resolvable(target, names).items() for index in held
    )


def _by_id(partitions: frozenset[TopicPartition], ids: Mapping[str, bytes]) -> ById:
    found: dict[bytes, set[int]] = {}
    for partition in partitions:
        found.setdefault(ids[partition.topic], set()).add(partition.partition)
    return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}
