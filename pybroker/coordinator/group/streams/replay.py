"""Applies records to a streams group.

Owns the only functions that change a group, while its records are loaded and as leader. Decides nothing. Accepts a
compacted log: a tombstone of a missing entry does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.coordinator.group.reconciled.group import NO_EPOCH
from pybroker.coordinator.group.reconciled.member import LEAVE_EPOCH
from pybroker.coordinator.group.reconciled.replay import Replay
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.member import MemberState, StreamsMember
from pybroker.coordinator.group.streams.tasks import NOTHING_HELD, HeldTasks, Tasks, task_set
from pybroker.coordinator.group.streams.topology import build_topology
from pybroker.protocol.messages.group_records import streams_group_current_member_assignment as current_record
from pybroker.protocol.messages.group_records import streams_group_member_metadata as member_record
from pybroker.protocol.messages.group_records import streams_group_metadata as metadata_record
from pybroker.protocol.messages.group_records import streams_group_target_assignment_member as target_record
from pybroker.protocol.messages.group_records import streams_group_target_assignment_metadata as target_epoch_record
from pybroker.protocol.messages.group_records import streams_group_topology as topology_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pybroker.coordinator.group.streams.tasks import ActiveTasks, TaskSet
    from pybroker.protocol.schema import Message

_STATES = {int(state): state for state in MemberState}


class _Draft:
    """A group while records change it. Each changed mapping is copied once, whatever the number of changes."""

    def __init__(self, group: StreamsGroup) -> None:
        self._group = group
        self._changed: dict[str, Any] = {}

    def set(self, **changes: Any) -> None:
        """Change fields."""
        self._changed.update(changes)

    def own(self, name: str) -> dict[str, Any]:
        """Return a mapping of the group that may be changed."""
        mapping: dict[str, Any] | None = self._changed.get(name)
        if mapping is None:
            mapping = self._changed[name] = dict(getattr(self._group, name))
        return mapping

    def member(self, member_id: str) -> StreamsMember | None:
        """Return a member in its current state, None if there is none."""
        member: StreamsMember | None = self._changed.get("members", self._group.members).get(member_id)
        return member

    def build(self) -> StreamsGroup:
        """Return the group after all changes."""
        return msgspec.structs.replace(self._group, **self._changed)


def _change_epoch(
    draft: _Draft, _key: metadata_record.StreamsGroupMetadataKey, value: metadata_record.StreamsGroupMetadataValue
) -> None:
    draft.set(
        epoch=value.epoch,
        metadata_hash=value.metadata_hash,
        validated_topology_epoch=value.validated_topology_epoch,
        last_configs={config.key: config.value for config in value.last_assignment_configs or ()},
        description_epochs=(value.stored_description_topology_epoch, value.failed_description_topology_epoch),
    )


def _change_member(
    draft: _Draft,
    key: member_record.StreamsGroupMemberMetadataKey,
    value: member_record.StreamsGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        if draft.member(key.member_id) is not None:
            del draft.own("members")[key.member_id]
            draft.own("task_offsets").pop(key.member_id, None)
        return
    endpoint = value.user_endpoint
    draft.own("members")[key.member_id] = msgspec.structs.replace(
        draft.member(key.member_id) or StreamsMember(key.member_id),
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )


def _change_target_epoch(
    draft: _Draft,
    _key: target_epoch_record.StreamsGroupTargetAssignmentMetadataKey,
    value: target_epoch_record.StreamsGroupTargetAssignmentMetadataValue | None,
) -> None:
    if value is None:
        draft.set(assignment_epoch=NO_EPOCH, assignment_ms=0)
    else:
        draft.set(assignment_epoch=value.assignment_epoch, assignment_ms=value.assignment_timestamp)


def _change_target(
    draft: _Draft,
    key: target_record.StreamsGroupTargetAssignmentMemberKey,
    value: target_record.StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        draft.own("targets").pop(key.member_id, None)
        return
    draft.own("targets")[key.member_id] = Tasks(
        _tasks(value.active_tasks), _tasks(value.standby_tasks), _tasks(value.warmup_tasks)
    )


def _change_current(
    draft: _Draft,
    key: current_record.StreamsGroupCurrentMemberAssignmentKey,
    value: current_record.StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    before = draft.member(key.member_id)
    if value is None:
        if before is not None:
            draft.own("members")[key.member_id] = msgspec.structs.replace(
                before, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NOTHING_HELD, revoking=NOTHING_HELD
            )
        return
    epoch = value.member_epoch
    draft.own("members")[key.member_id] = msgspec.structs.replace(
        before or StreamsMember(key.member_id),
        epoch=epoch,
        previous_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, MemberState.UNKNOWN),
        assigned=HeldTasks(_active(value.active_tasks, epoch), _tasks(value.standby_tasks), _tasks(value.warmup_tasks)),
        revoking=HeldTasks(
            _active(value.active_tasks_pending_revocation, epoch),
            _tasks(value.standby_tasks_pending_revocation),
            _tasks(value.warmup_tasks_pending_revocation),
        ),
    )


def _change_topology(
    draft: _Draft,
    _key: topology_record.StreamsGroupTopologyKey,
    value: topology_record.StreamsGroupTopologyValue | None,
) -> None:
    draft.set(topology=None if value is None else build_topology(value))


def _tasks(tasks: Iterable[current_record.TaskIds | target_record.TaskIds]) -> TaskSet:
    return task_set((one.subtopology_id, one.partitions) for one in tasks)


def _active(tasks: Iterable[current_record.TaskIds], epoch: int) -> ActiveTasks:
    """Return active tasks with the epochs of their assignment, which brokers before Kafka 4.3 did not write."""
    held: dict[str, dict[int, int]] = {}
    for one in tasks:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = [max(epoch, 0)] * len(one.partitions)
        if epochs:
            held[one.subtopology_id] = dict(zip(one.partitions, epochs, strict=True))
    return held


_CHANGES: dict[type[Message], Callable[[_Draft, Any, Any], None]] = {
    metadata_record.StreamsGroupMetadataKey: _change_epoch,
    member_record.StreamsGroupMemberMetadataKey: _change_member,
    target_epoch_record.StreamsGroupTargetAssignmentMetadataKey: _change_target_epoch,
    target_record.StreamsGroupTargetAssignmentMemberKey: _change_target,
    current_record.StreamsGroupCurrentMemberAssignmentKey: _change_current,
    topology_record.StreamsGroupTopologyKey: _change_topology,
}

REPLAY = Replay(StreamsGroup, _Draft, _CHANGES, metadata_record.StreamsGroupMetadataKey)
