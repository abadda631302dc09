"""A member of a streams group (KIP-1071): heartbeats carry its topology and tasks, and responses its target tasks.

Owns the content of a heartbeat. The states of a member are those of `heartbeat_member`. Must not know what a task does:
a task is a subtopology and a partition, and stands for the partitions of the subtopology's topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.heartbeat_member import (
    COMMON_DECISIONS,
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Decisions,
    HeartbeatMember,
    HeartbeatMembership,
    MemberRules,
    MembershipState,
    complete_step,
    join,
)
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.membership.streams_events import (
    GroupTask,
    GroupTasks,
    ShutdownRequested,
    StreamsJoined,
    TasksReconciled,
)
from pybroker.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
)

NO_TASKS = GroupTasks()


class StreamsRules(MemberRules, frozen=True, kw_only=True):
    """The fields that a member sends when it joins, and its settings."""

    topology: Topology
    """The topology as the coordinator validates it."""
    process_id: str
    """The id of the process, which all members of one process share."""
    endpoint: tuple[str, int] | None = None
    """Host and port of `application.server`."""
    rack: str | None = None
    client_tags: tuple[tuple[str, str], ...] = ()


class StreamsMembership(HeartbeatMembership[GroupTasks], kw_only=True):
    """The state of a member. Assignments are tasks."""

    is_ready: bool = False
    """Whether the coordinator has assigned tasks to this membership."""
    endpoint_epoch: int = -1
    shuts_down: bool = False
    """Whether heartbeats request the shutdown of all members."""

    def forget(self) -> None:
        """End the membership; the program keeps its tasks."""
        super().forget()
        self.endpoint_epoch, self.is_ready = -1, False

    def read(self, response: StreamsGroupHeartbeatResponse) -> GroupTasks | None:
        """Read the epoch of endpoints; return the target tasks of a response, if any."""
        self.endpoint_epoch = response.endpoint_information_epoch
        if response.active_tasks is None:
            return None
        self.is_ready = True
        return GroupTasks(
            _tasks(response.active_tasks), _tasks(response.standby_tasks or ()), _tasks(response.warmup_tasks or ())
        )


class StreamsMember(HeartbeatMember[StreamsMembership, StreamsRules]):
    """One member. Times are seconds of any monotonic clock."""

    def __init__(self, rules: StreamsRules, member_id: str) -> None:
        it = StreamsMembership(member_id=member_id, nothing=NO_TASKS, owned=NO_TASKS, target=NO_TASKS)
        super().__init__(rules, it, DECISIONS)
        self._topics: dict[str, list[str]] = {
            subtopology.subtopology_id: [
                *subtopology.source_topics,
                *(topic.name for topic in subtopology.repartition_source_topics),
            ]
            for subtopology in rules.topology.subtopologies
        }

    def partitions(self, tasks: Iterable[GroupTask]) -> frozenset[TopicPartition]:
        """Return the partitions of the source and repartition topics of tasks."""
        return frozenset(
            TopicPartition(topic, task.partition) for task in tasks for topic in self._topics.get(task.subtopology, ())
        )

    def rebalance_step(self) -> RebalanceStep | None:
        """Return the step that the program must do now: partitions of active tasks."""
        it = self.membership
        if it.state is MembershipState.FENCED:
            return RebalanceStep(lost=self.partitions(it.owned.active))
        if it.state is MembershipState.RECONCILING and it.target != it.owned:
            return RebalanceStep(
                revoked=self.partitions(it.owned.active - it.target.active),
                assigned=self.partitions(it.target.active - it.owned.active),
            )
        return None

    def build_heartbeat(self) -> StreamsGroupHeartbeatRequest:
        """Build a heartbeat: all fields when joining, else the tasks if they have changed since the last one."""
        it = self.membership
        request = self._build_request(it.epoch)
        if it.epoch == JOIN_EPOCH:
            rules = self.rules
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
            group_id=self.rules.group_id,
            member_id=it.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=it.endpoint_epoch,
            shutdown_application=it.shuts_down,
        )


def _joined(it: StreamsMembership, _event: StreamsJoined, now: float) -> Remedy:
    join(it, now)
    return Remedy.NONE


def _reconciled(it: StreamsMembership, event: TasksReconciled, now: float) -> Remedy:
    it.owned = NO_TASKS if event.step.assigned is None else event.tasks
    complete_step(it, event.step, now)
    return Remedy.NONE


def _shutdown_requested(it: StreamsMembership, _event: ShutdownRequested, now: float) -> Remedy:
    it.shuts_down = True
    it.due_at = now
    return Remedy.NONE


DECISIONS: Decisions = {
    **COMMON_DECISIONS,
    ShutdownRequested: _shutdown_requested,
    StreamsJoined: _joined,
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
