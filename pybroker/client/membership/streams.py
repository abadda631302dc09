"""A member of a streams group (KIP-1071): heartbeats carry its topology and tasks, and responses its target tasks.

Owns the states of a member, which are those of `ModernMember`, and the content of a heartbeat. Must not know what a
task does: a task is a subtopology and a partition, and stands for the partitions of the subtopology's topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import msgspec

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.events import CommitRefused, Left, Polled
from pybroker.client.membership.machine import Outcome
from pybroker.client.membership.modern import (
    EXPELLED,
    IN_GROUP,
    JOIN_EPOCH,
    LEAVE_EPOCH,
    SEARCH,
    STATES,
    ModernState,
    ModernTrigger,
)
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.membership.streams_events import (
    GroupTask,
    GroupTasks,
    ShutdownRequested,
    StreamsHeartbeatCompleted,
    StreamsHeartbeatLost,
    StreamsHeartbeatSent,
    StreamsJoined,
    StreamsStalled,
    TasksReconciled,
)
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    Topology,
)

NO_TASKS = GroupTasks()


class StreamsRules(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that a member sends when it joins, and its settings."""

    group_id: str
    topology: Topology
    """The topology as the coordinator validates it."""
    process_id: str
    """The id of the process, which all members of one process share."""
    endpoint: tuple[str, int] | None = None
    """Host and port of `application.server`."""
    rack: str | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    max_poll_interval_s: float


class StreamsMembership(msgspec.Struct):
    """The state of a member. A decision changes a copy."""

    rules: StreamsRules
    member_id: str
    state: ModernState = ModernState.UNSUBSCRIBED
    epoch: int = JOIN_EPOCH
    owned: GroupTasks = NO_TASKS
    """The tasks of the program. Only rebalance steps change them."""
    target: GroupTasks = NO_TASKS
    is_ready: bool = False
    """Whether the coordinator has assigned tasks to this membership."""
    sent: GroupTasks | None = None
    """The tasks that the coordinator knows; None before the first heartbeat after joining."""
    endpoint_epoch: int = -1
    shuts_down: bool = False
    """Whether heartbeats request the shutdown of all members."""
    interval_s: float = 0.0
    """The heartbeat interval from the coordinator's response; 0 before the first."""
    due_at: float = float("inf")
    """When the next heartbeat is due, while the member is in the group."""
    polled_at: float = float("-inf")

    def move(self, trigger: ModernTrigger) -> None:
        """Set the next state. Raises `TransitionError` where the state has no such transition."""
        self.state = STATES.following(self.state, trigger)

    def forget(self) -> None:
        """End the membership; the program keeps its tasks."""
        self.epoch, self.target, self.sent, self.endpoint_epoch = JOIN_EPOCH, NO_TASKS, None, -1
        self.is_ready = False


class StreamsMember:
    """One member. Times are seconds of any monotonic clock."""

    def __init__(self, rules: StreamsRules, member_id: str) -> None:
        self.membership = StreamsMembership(rules, member_id)
        self._topics: dict[str, list[str]] = {
            subtopology.subtopology_id: [
                *subtopology.source_topics,
                *(topic.name for topic in subtopology.repartition_source_topics),
            ]
            for subtopology in rules.topology.subtopologies
        }

    def handle(self, event: Any, now: float) -> Outcome[StreamsMembership]:
        """Decide about an event at `now`. Raises `TransitionError` where the event cannot happen in the state."""
        after = copy(self.membership)
        remedy = DECISIONS[type(event)](after, event, now)
        return Outcome(after, remedy)

    def apply(self, membership: StreamsMembership) -> None:
        """Make the membership that `handle` returned the current one."""
        self.membership = membership

    def partitions(self, tasks: Iterable[GroupTask]) -> frozenset[TopicPartition]:
        """Return the partitions of the source and repartition topics of tasks."""
        return frozenset(
            TopicPartition(topic, task.partition) for task in tasks for topic in self._topics.get(task.subtopology, ())
        )

    def rebalance_step(self) -> RebalanceStep | None:
        """Return the step that the program must do now: partitions of active tasks."""
        it = self.membership
        if it.state is ModernState.FENCED:
            return RebalanceStep(lost=self.partitions(it.owned.active))
        if it.state is ModernState.RECONCILING and it.target != it.owned:
            return RebalanceStep(
                revoked=self.partitions(it.owned.active - it.target.active),
                assigned=self.partitions(it.target.active - it.owned.active),
            )
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

    def build_heartbeat(self) -> StreamsGroupHeartbeatRequest:
        """Build a heartbeat: all fields when joining, else the tasks if they have changed since the last one."""
        it = self.membership
        request = self._build_request(it.epoch)
        if it.epoch == JOIN_EPOCH:
            rules = it.rules
            request.topology = rules.topology
            request.rebalance_timeout_ms = round(rules.max_poll_interval_s * 1000)
            request.process_id = rules.process_id
            request.rack_id = rules.rack
            request.client_tags = [KeyValue(key=key, value=value) for key, value in rules.client_tags]
            if rules.endpoint is not None:
                request.user_endpoint = Endpoint(host=rules.endpoint[0], port=rules.endpoint[1])
            request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
        elif it.owned != it.sent:
            request.active_tasks = _task_ids(it.owned.active)
            request.standby_tasks = _task_ids(it.owned.standby)
            request.warmup_tasks = _task_ids(it.owned.warmup)
        return request

    def build_leave(self) -> StreamsGroupHeartbeatRequest:
        """Build the heartbeat that leaves the group."""
        return self._build_request(LEAVE_EPOCH)

    def _build_request(self, epoch: int) -> StreamsGroupHeartbeatRequest:
        it = self.membership
        return StreamsGroupHeartbeatRequest(
            group_id=it.rules.group_id,
            member_id=it.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=it.endpoint_epoch,
            shutdown_application=it.shuts_down,
        )


def _polled(it: StreamsMembership, _event: Polled, now: float) -> Remedy:
    it.polled_at = now
    if it.state is ModernState.STALE:  # The member had left after max.poll.interval.ms.
        it.move(ModernTrigger.WANTS_IN)
    return Remedy.NONE


def _joined(it: StreamsMembership, _event: StreamsJoined, now: float) -> Remedy:
    it.polled_at, it.due_at = now, now
    if it.state in (ModernState.UNSUBSCRIBED, ModernState.STALE, ModernState.FATAL):
        it.move(ModernTrigger.WANTS_IN)
    return Remedy.NONE


def _reconciled(it: StreamsMembership, event: TasksReconciled, now: float) -> Remedy:
    step = event.step
    if step.assigned is None:
        it.owned = NO_TASKS
        if it.state is ModernState.FENCED:
            it.move(ModernTrigger.GAVE_UP)
    else:
        it.owned = event.tasks
        if it.state is ModernState.RECONCILING:
            it.move(ModernTrigger.RECONCILED)
    it.due_at = now
    return Remedy.NONE


def _left(it: StreamsMembership, _event: Left, _now: float) -> Remedy:
    if it.state is not ModernState.UNSUBSCRIBED:
        it.move(ModernTrigger.LEFT)
    it.forget()
    it.owned = NO_TASKS
    return Remedy.NONE


def _stalled(it: StreamsMembership, _event: StreamsStalled, _now: float) -> Remedy:
    it.move(ModernTrigger.STALLED)
    it.forget()
    return Remedy.NONE


def _shutdown_requested(it: StreamsMembership, _event: ShutdownRequested, now: float) -> Remedy:
    it.shuts_down = True
    it.due_at = now
    return Remedy.NONE


def _heartbeat_sent(it: StreamsMembership, event: StreamsHeartbeatSent, now: float) -> Remedy:
    it.sent = NO_TASKS if event.request.member_epoch == JOIN_EPOCH else it.owned
    it.due_at = now + it.interval_s if it.interval_s else float("inf")
    if it.state is ModernState.ACKNOWLEDGING:
        it.move(ModernTrigger.ACKNOWLEDGED)
        if it.target != it.owned:
            it.move(ModernTrigger.GOT_TARGET)
    return Remedy.NONE


def _heartbeat_lost(it: StreamsMembership, _event: StreamsHeartbeatLost, now: float) -> Remedy:
    it.sent = None
    it.due_at = now
    return Remedy.NONE


def _heartbeat_completed(it: StreamsMembership, event: StreamsHeartbeatCompleted, now: float) -> Remedy:
    response = event.response
    if it.state not in IN_GROUP:
        return Remedy.NONE
    if response.error_code:
        return _rejected(it, response.error_code, now)
    if event.epoch == JOIN_EPOCH and it.epoch != JOIN_EPOCH:
        return Remedy.NONE
    it.epoch = response.member_epoch
    it.endpoint_epoch = response.endpoint_information_epoch
    it.interval_s = response.heartbeat_interval_ms / 1000
    it.due_at = min(it.due_at, now + it.interval_s)
    if response.active_tasks is not None:
        it.target = GroupTasks(
            _tasks(response.active_tasks), _tasks(response.standby_tasks or ()), _tasks(response.warmup_tasks or ())
        )
        it.is_ready = True
        if it.target != it.owned:
            it.move(ModernTrigger.GOT_TARGET)
        elif it.state in (ModernState.JOINING, ModernState.RECONCILING):
            it.move(ModernTrigger.HAS_TARGET)
    return Remedy.NONE


def _commit_refused(it: StreamsMembership, event: CommitRefused, _now: float) -> Remedy:
    if event.code in (*EXPELLED, ErrorCode.STALE_MEMBER_EPOCH) and event.epoch == it.epoch:
        it.due_at = float("-inf")  # The next heartbeat reports the member's state.
    return Remedy.NONE


def _rejected(it: StreamsMembership, code: int, now: float) -> Remedy:
    if code in SEARCH or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        it.sent = None
        it.due_at = now
        return Remedy.SEARCH if code in SEARCH else Remedy.WAIT
    it.forget()
    if code in EXPELLED:
        it.due_at = now
        it.move(ModernTrigger.WAS_FENCED)
        return Remedy.NONE
    it.move(ModernTrigger.REFUSED)
    return Remedy.FAIL


DECISIONS: Mapping[type, Callable[[StreamsMembership, Any, float], Remedy]] = {
    CommitRefused: _commit_refused,
    Left: _left,
    Polled: _polled,
    ShutdownRequested: _shutdown_requested,
    StreamsHeartbeatCompleted: _heartbeat_completed,
    StreamsHeartbeatLost: _heartbeat_lost,
    StreamsHeartbeatSent: _heartbeat_sent,
    StreamsJoined: _joined,
    StreamsStalled: _stalled,
    TasksReconciled: _reconciled,
}
"""The decision function of each event, which changes a copy of the membership."""


def _tasks(ids: Sequence[TaskIds]) -> frozenset[GroupTask]:
    return frozenset(GroupTask(task.subtopology_id, partition) for task in ids for partition in task.partitions)


def _task_ids(tasks: Iterable[GroupTask]) -> list[TaskIds]:
    found: dict[str, list[int]] = {}
    for task in sorted(tasks):
        found.setdefault(task.subtopology, []).append(task.partition)
    return [TaskIds(subtopology_id=name, partitions=partitions) for name, partitions in found.items()]
