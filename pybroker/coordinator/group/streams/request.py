"""The validation of a heartbeat of a streams group, and the tasks in it.

Owns the checks that need no group, with Kafka's messages, and the check of tasks against the topology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import InvalidRequestError
from pybroker.coordinator.group.reconciled.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from pybroker.coordinator.group.streams.tasks import Tasks, task_set
from pybroker.coordinator.group.streams.topology import check_topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.coordinator.group.streams.configuration import ConfiguredSubtopology
    from pybroker.coordinator.group.streams.tasks import TaskSet
    from pybroker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise an error if a request is inconsistent, in Kafka's words."""
    _check_not_empty(request.member_id, "MemberId can't be empty.")
    _check_not_empty(request.group_id, "GroupId can't be empty.")
    _check_not_empty(request.instance_id, "InstanceId can't be empty.")
    _check_not_empty(request.rack_id, "RackId can't be empty.")
    kinds = {"ActiveTasks": request.active_tasks, "StandbyTasks": request.standby_tasks}
    kinds["WarmupTasks"] = request.warmup_tasks
    if request.member_epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise InvalidRequestError("RebalanceTimeoutMs must be provided in first request.")
        for name, tasks in kinds.items():
            if tasks is None or tasks:
                raise InvalidRequestError(f"{name} must be empty when (re-)joining.")
        if request.topology is None:
            raise InvalidRequestError("Topology must be non-null when (re-)joining.")
        check_topology(request.topology)
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise InvalidRequestError("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequestError(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    missing = [tasks is None for tasks in kinds.values()]
    if any(missing) and not all(missing):
        raise InvalidRequestError("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH and request.topology is not None:
        raise InvalidRequestError("Topology can only be provided when (re-)joining.")


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """Return the tasks in a request, None if it contains none."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(_tasks(active), _tasks(standby), _tasks(warmup))


def check_owned(request: StreamsGroupHeartbeatRequest, parts: Mapping[str, ConfiguredSubtopology]) -> None:
    """Raise an error if a request contains tasks that the topology does not have."""
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for task in tasks or ():
            part = parts.get(task.subtopology_id)
            if part is None:
                raise InvalidRequestError(f"Subtopology {task.subtopology_id} does not exist in the topology.")
            for index in task.partitions:
                if not 0 <= index < part.tasks:
                    raise InvalidRequestError(
                        f"Task {index} for subtopology {task.subtopology_id} is invalid. Number of tasks for this "
                        f"subtopology: {part.tasks}"
                    )


def _check_not_empty(text: str | None, fault: str) -> None:
    if text is not None and not text.strip():
        raise InvalidRequestError(fault)


def _tasks(tasks: Sequence[TaskIds]) -> TaskSet:
    return task_set((task.subtopology_id, task.partitions) for task in tasks)
