"""A member of a group of KIP-848: heartbeats carry its subscription to the coordinator, and assignments back.

Owns the states of a member, which are those of Kafka's client, and the content of a heartbeat. Topics are ids here;
the driver resolves them by metadata requests. `pybroker.client.membership.machine` defines the interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from enum import Enum, auto
from typing import Any

import msgspec

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.events import CommitRefused, Left, Polled
from pybroker.client.membership.machine import Outcome
from pybroker.client.membership.modern_events import (
    GroupSubscription,
    HeartbeatCompleted,
    HeartbeatLost,
    HeartbeatSent,
    IdGiven,
    Stalled,
    StepDone,
    Subscribed,
)
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.machine.transitions import Transitions
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_FOR_A_WHILE_EPOCH = 0, -1, -2
NOTHING: frozenset[TopicPartition] = frozenset()

ById = dict[bytes, frozenset[int]]
"""Partitions by topic id."""


class ModernState(Enum):
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


class ModernTrigger(Enum):
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


_S, _T = ModernState, ModernTrigger
IN_GROUP = (_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE)

TRANSITIONS: dict[tuple[ModernState, ModernTrigger], ModernState] = {
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
STATES = Transitions("ModernMember", _S.UNSUBSCRIBED, TRANSITIONS)

SEARCH = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
EXPELLED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}


class ModernRules(msgspec.Struct, frozen=True, kw_only=True):
    """The group and instance id of the member, and its settings."""

    group_id: str
    instance_id: str | None
    max_poll_interval_s: float


class ModernMembership(msgspec.Struct):
    """The state of a member. A decision changes a copy; a msgspec struct is the cheapest to copy."""

    rules: ModernRules
    member_id: str
    state: ModernState = ModernState.UNSUBSCRIBED
    epoch: int = JOIN_EPOCH
    owned: frozenset[TopicPartition] = NOTHING
    """The partitions of the program. Only rebalance steps change them."""
    target: ById = {}
    """The target assignment; replaced and never mutated, as are the other mappings."""
    held: ById = {}
    """The partitions of the program by topic id, as they are acknowledged."""
    subscription: GroupSubscription = GroupSubscription()
    sent: GroupSubscription | None = None
    """The subscription that the coordinator knows; None before the first heartbeat."""
    sent_held: ById | None = None
    interval_s: float = 0.0
    """The heartbeat interval from the coordinator's response; 0 before the first."""
    due_at: float = float("inf")
    """When the next heartbeat is due, while the member is in the group."""
    polled_at: float = float("-inf")

    def move(self, trigger: ModernTrigger) -> None:
        """Set the next state. Raises `TransitionError` where the state has no such transition."""
        self.state = STATES.following(self.state, trigger)

    def forget(self) -> None:
        """End the membership; the program keeps its partitions."""
        self.epoch, self.target, self.held = JOIN_EPOCH, {}, {}
        self.sent = self.sent_held = None


class ModernMember:
    """One member. Times are seconds of any monotonic clock."""

    def __init__(self, rules: ModernRules, member_id: str) -> None:
        self.membership = ModernMembership(rules, member_id)

    def handle(self, event: Any, now: float) -> Outcome[ModernMembership]:
        """Decide about an event at `now`. Raises `TransitionError` where the event cannot happen in the state."""
        after = copy(self.membership)
        remedy = DECISIONS[type(event)](after, event, now)
        return Outcome(after, remedy)

    def apply(self, membership: ModernMembership) -> None:
        """Make the membership that `handle` returned the current one."""
        self.membership = membership

    @property
    def state(self) -> ModernState:
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

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Return the partitions of the program."""
        return self.membership.owned

    def rebalance_step(self, names: Mapping[bytes, str]) -> RebalanceStep | None:
        """Return the step that the program must do now. Topics with unknown names are not included yet."""
        it = self.membership
        if it.state is ModernState.FENCED:
            return RebalanceStep(lost=it.owned)
        if it.state is ModernState.RECONCILING:
            wanted = _named(it.target, names)
            if wanted != it.owned or it.held != _resolvable(it.target, names):
                return RebalanceStep(revoked=it.owned - wanted, assigned=wanted - it.owned)
        return None

    def has_stalled(self, now: float) -> bool:
        """Whether the program has not polled for longer than max.poll.interval.ms."""
        return self.stalls_at() < now

    def stalls_at(self) -> float:
        """Return the time at which `has_stalled` becomes true."""
        it = self.membership
        alive = it.state in (*IN_GROUP, ModernState.FENCED)
        return it.polled_at + it.rules.max_poll_interval_s if alive else float("inf")

    def heartbeat_at(self) -> float:
        """Return when the next heartbeat is due."""
        return self.membership.due_at if self.membership.state in IN_GROUP else float("inf")

    def build_heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """Build a heartbeat: all fields when joining, else those that have changed since the last one."""
        it = self.membership
        joins = it.epoch == JOIN_EPOCH
        subscription, sent = it.subscription, None if joins else it.sent
        request = self._build_request(it.epoch)
        if sent is None:
            request.rebalance_timeout_ms = round(it.rules.max_poll_interval_s * 1000)
            request.rack_id = subscription.rack
            request.server_assignor = subscription.assignor
        if sent is None or (subscription.topics, subscription.regex) != (sent.topics, sent.regex):
            request.subscribed_topic_names = list(subscription.topics)
            # An empty expression removes the previous one.
            request.subscribed_topic_regex = subscription.regex or ("" if sent is not None and sent.regex else None)
        if joins:
            request.topic_partitions = []
        elif it.held != it.sent_held:
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_id, partitions=sorted(held)) for topic_id, held in it.held.items()
            ]
        return request

    def build_leave(self) -> ConsumerGroupHeartbeatRequest:
        """Build the heartbeat that leaves the group. The group keeps a static member for its session timeout."""
        return self._build_request(
            LEAVE_EPOCH if self.membership.rules.instance_id is None else LEAVE_FOR_A_WHILE_EPOCH
        )

    def _build_request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        rules = self.membership.rules
        return ConsumerGroupHeartbeatRequest(
            group_id=rules.group_id, member_id=self.member_id, member_epoch=epoch, instance_id=rules.instance_id
        )


def _polled(it: ModernMembership, _event: Polled, now: float) -> Remedy:
    it.polled_at = now
    if it.state is ModernState.STALE:  # The member had left after max.poll.interval.ms.
        it.move(ModernTrigger.WANTS_IN)
    return Remedy.NONE


def _subscribed(it: ModernMembership, event: Subscribed, now: float) -> Remedy:
    it.subscription, it.polled_at, it.due_at = event.subscription, now, now
    if it.state in (ModernState.UNSUBSCRIBED, ModernState.STALE, ModernState.FATAL):
        it.move(ModernTrigger.WANTS_IN)
    return Remedy.NONE


def _step_done(it: ModernMembership, event: StepDone, now: float) -> Remedy:
    step = event.step
    it.owned = (it.owned - step.lost - step.revoked) | (step.assigned or NOTHING)
    if it.state is ModernState.FENCED and step.assigned is None:  # Not where it was fenced during a step.
        it.move(ModernTrigger.GAVE_UP)
    elif it.state is ModernState.RECONCILING and step.assigned is not None:
        ids = {name: topic_id for topic_id, name in event.names.items()}
        it.held = _by_id(it.owned, ids)
        it.move(ModernTrigger.RECONCILED)
    it.due_at = now
    return Remedy.NONE


def _left(it: ModernMembership, _event: Left, _now: float) -> Remedy:
    if it.state is not ModernState.UNSUBSCRIBED:
        it.move(ModernTrigger.LEFT)
    it.forget()
    return Remedy.NONE


def _stalled(it: ModernMembership, _event: Stalled, _now: float) -> Remedy:
    it.move(ModernTrigger.STALLED)
    it.forget()
    return Remedy.NONE


def _id_given(it: ModernMembership, event: IdGiven, _now: float) -> Remedy:
    it.member_id = event.member_id
    return Remedy.NONE


def _heartbeat_sent(it: ModernMembership, event: HeartbeatSent, now: float) -> Remedy:
    it.sent = it.subscription
    it.sent_held = {} if event.request.member_epoch == JOIN_EPOCH else it.held
    it.due_at = now + it.interval_s if it.interval_s else float("inf")
    if it.state is ModernState.ACKNOWLEDGING:
        it.move(ModernTrigger.ACKNOWLEDGED)
        if it.target != it.held:
            it.move(ModernTrigger.GOT_TARGET)
    return Remedy.NONE


def _heartbeat_lost(it: ModernMembership, _event: HeartbeatLost, now: float) -> Remedy:
    it.sent = it.sent_held = None
    it.due_at = now
    return Remedy.NONE


def _heartbeat_completed(it: ModernMembership, event: HeartbeatCompleted, now: float) -> Remedy:
    response = event.response
    if it.state not in IN_GROUP:
        return Remedy.NONE
    if response.error_code:
        return _refused(it, response.error_code, now)
    if event.epoch == JOIN_EPOCH and it.epoch != JOIN_EPOCH:
        return Remedy.NONE
    it.epoch = response.member_epoch
    it.interval_s = response.heartbeat_interval_ms / 1000
    it.due_at = min(it.due_at, now + it.interval_s)
    if response.assignment is not None:
        sent = response.assignment.topic_partitions
        it.target = {t.topic_id: frozenset(t.partitions) for t in sent if t.partitions}
        if it.target != it.held:
            it.move(ModernTrigger.GOT_TARGET)
        elif it.state in (ModernState.JOINING, ModernState.RECONCILING):
            it.move(ModernTrigger.HAS_TARGET)
    return Remedy.NONE


def _commit_refused(it: ModernMembership, event: CommitRefused, _now: float) -> Remedy:
    if event.code in (*EXPELLED, ErrorCode.STALE_MEMBER_EPOCH) and event.epoch == it.epoch:
        it.due_at = float("-inf")  # The next heartbeat reports the member's state.
    return Remedy.NONE


def _refused(it: ModernMembership, code: int, now: float) -> Remedy:
    if code in SEARCH or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        it.sent = it.sent_held = None
        it.due_at = now
        return Remedy.SEARCH if code in SEARCH else Remedy.WAIT
    it.forget()
    if code in EXPELLED:
        it.due_at = now
        it.move(ModernTrigger.WAS_FENCED)
        return Remedy.NONE
    it.move(ModernTrigger.REFUSED)
    return Remedy.FAIL


DECISIONS: dict[type, Callable[[ModernMembership, Any, float], Remedy]] = {
    CommitRefused: _commit_refused,
    HeartbeatCompleted: _heartbeat_completed,
    HeartbeatLost: _heartbeat_lost,
    HeartbeatSent: _heartbeat_sent,
    IdGiven: _id_given,
    Left: _left,
    Polled: _polled,
    Stalled: _stalled,
    StepDone: _step_done,
    Subscribed: _subscribed,
}
"""The decision function of each event, which changes a copy of the membership."""


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
