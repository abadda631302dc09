"""The reply to a heartbeat of a streams group: the response, and the internal topics that its handler must create.

Owns the form of the response: its statuses, and the fields that are null if they are unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.reconciled.member import JOIN_EPOCH
from pybroker.coordinator.group.streams.endpoints import endpoint_partitions
from pybroker.coordinator.group.streams.status import Status, StatusCode
from pybroker.coordinator.group.streams.tasks import without_epochs
from pybroker.protocol.messages import streams_group_heartbeat as message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.coordinator.group.events import StreamsHeartbeat
    from pybroker.coordinator.group.streams.configuration import ConfiguredTopic, ConfiguredTopology
    from pybroker.coordinator.group.streams.group import StreamsGroup
    from pybroker.coordinator.group.streams.member import StreamsMember
    from pybroker.coordinator.group.streams.tasks import TaskSet
    from pybroker.coordinator.group.view import GroupView

_FIRST_VERSION_WITH_INT64_LAG = 1
_MOST_INT32 = 2**31 - 1


class StreamsReply(msgspec.Struct, frozen=True):
    """The reply of the group coordinator."""

    response: message.StreamsGroupHeartbeatResponse
    missing: tuple[ConfiguredTopic, ...] = ()
    """Internal topics that do not exist."""


class HeartbeatStep(msgspec.Struct, frozen=True):
    """The effect of a heartbeat on its member."""

    before: StreamsMember
    after: StreamsMember
    configured: ConfiguredTopology
    delayed: Status | None
    """Set if a new target is due but delayed."""


def build_reply(view: GroupView, event: StreamsHeartbeat, group: StreamsGroup, step: HeartbeatStep) -> StreamsReply:
    """Return the reply; `group` is the group after the heartbeat."""
    request, before, after = event.request, step.before, step.after
    settings = view.streams_settings(group.id)
    response = message.StreamsGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        task_offset_interval_ms=settings.task_offset_interval_ms,
        status=[message.Status(status_code=one.code, status_detail=one.detail) for one in _statuses(group, step)],
        endpoint_information_epoch=group.endpoint_epoch,
    )
    if event.version >= _FIRST_VERSION_WITH_INT64_LAG:
        response.acceptable_recovery_lag = settings.acceptable_recovery_lag
    else:
        response.acceptable_recovery_lag_legacy = min(settings.acceptable_recovery_lag, _MOST_INT32)
    if request.member_epoch == JOIN_EPOCH or before.assigned != after.assigned:
        response.active_tasks = _tasks(without_epochs(after.assigned.active))
        response.standby_tasks = _tasks(after.assigned.standby)
        response.warmup_tasks = _tasks(after.assigned.warmup)
    if group.endpoint_epoch != request.endpoint_information_epoch:
        parts = step.configured.subtopologies
        response.partitions_by_user_endpoint = endpoint_partitions(group, parts, view.topics)
    return StreamsReply(response, step.configured.missing)


def _statuses(group: StreamsGroup, step: HeartbeatStep) -> Iterator[Status]:
    topology = group.topology
    if topology is not None and step.after.topology_epoch < topology.epoch:
        yield Status(
            StatusCode.STALE_TOPOLOGY,
            f"The member's topology epoch {step.after.topology_epoch} is behind the group's topology epoch "
            f"{topology.epoch}.",
        )
    if step.delayed is not None:
        yield step.delayed
    if step.configured.fault is not None:
        yield step.configured.fault
    if group.shutdown_by is not None:
        yield Status(
            StatusCode.SHUTDOWN_APPLICATION,
            f"Streams group member {group.shutdown_by} encountered a fatal error and requested a shutdown for the "
            "entire application.",
        )


def _tasks(tasks: TaskSet) -> list[message.TaskIds]:
    return [message.TaskIds(subtopology_id=part, partitions=sorted(indexes)) for part, indexes in sorted(tasks.items())]
