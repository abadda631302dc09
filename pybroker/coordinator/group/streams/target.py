"""The target assignment: the tasks that each member should have, computed again when the group's epoch increases.

Owns the assignor's input, and the records of its result: only changed targets, and the epoch. The assignment is delayed
by `group.streams.initial.rebalance.delay.ms` in an empty group, and by `group.streams.assignment.interval.ms` after the
last one. Until then members reconcile with the last target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import StreamsInvalidTopologyError
from pybroker.coordinator.group.streams.assignors import ASSIGNORS
from pybroker.coordinator.group.streams.assignors.spec import StreamsGroupSpec, StreamsMemberSpec, SubtopologySpec
from pybroker.coordinator.group.streams.configuration import configure
from pybroker.coordinator.group.streams.offsets import NO_OFFSETS
from pybroker.coordinator.group.streams.records import build_target, build_target_epoch
from pybroker.coordinator.group.streams.status import Status, StatusCode
from pybroker.coordinator.group.streams.tasks import NO_TASKS, without_epochs

if TYPE_CHECKING:
    from pybroker.coordinator.group.streams.configuration import ConfiguredTopology
    from pybroker.coordinator.group.streams.decision import StreamsDecision
    from pybroker.coordinator.group.streams.group import StreamsGroup
    from pybroker.coordinator.group.view import GroupView

BY_INITIAL_DELAY = Status(
    StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay."
)
BY_INTERVAL = Status(StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")


def maybe_update_target(
    decision: StreamsDecision, configured: ConfiguredTopology, view: GroupView, now: int
) -> Status | None:
    """Compute a new target if one is due; return the status if it is due but delayed."""
    group = decision.group
    if group.is_delayed:
        return BY_INITIAL_DELAY
    if group.assignment_epoch >= group.epoch:
        return None
    settings = view.streams_settings(group.id)
    if not group.may_assign(settings.assignment_interval_ms, now):
        return BY_INTERVAL
    found = ASSIGNORS[settings.assignor](build_spec(group, configured, settings.standby_replicas))
    targets = {member_id: found.get(member_id, NO_TASKS) for member_id in sorted(group.members)}
    decision.write(
        build_target(group.id, member_id, target)
        for member_id, target in targets.items()
        if target != group.targets.get(member_id)
    )
    decision.write([build_target_epoch(group.id, group.epoch, now)])
    return None


def build_spec(group: StreamsGroup, configured: ConfiguredTopology, standby_replicas: int) -> StreamsGroupSpec:
    """Return the assignor's input; without tasks if topics are missing."""
    parts = configured.subtopologies if configured.is_ready else None
    members = {
        member_id: StreamsMemberSpec(
            member.process_id,
            without_epochs(member.assigned.active),
            member.assigned.standby,
            group.task_offsets.get(member_id, NO_OFFSETS).current,
        )
        for member_id, member in sorted(group.members.items())
    }
    subtopologies = {part.id: SubtopologySpec(part.tasks, part.has_state) for part in (parts or {}).values()}
    return StreamsGroupSpec(members, subtopologies, standby_replicas)


def end_delay(decision: StreamsDecision, view: GroupView, now: int) -> None:
    """Compute the first target of a group whose initial rebalance delay is over."""
    decision.set(is_delayed=False)
    group = decision.group
    if not group.members or group.topology is None:
        return
    try:
        configured = configure(group.topology, view.topics)
    except StreamsInvalidTopologyError:
        return  # The topics have changed. The next heartbeat returns the error.
    maybe_update_target(decision, configured, view, now)
