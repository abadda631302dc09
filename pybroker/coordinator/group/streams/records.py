"""Builds the records of streams groups from values.

Owns the order of fields' elements, and the order of the tombstones of a member or a group: dependent records first, as
Kafka's replay requires. Must not know why a record is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.records import GroupRecord
from pybroker.protocol.messages.group_records import streams_group_current_member_assignment as current_record
from pybroker.protocol.messages.group_records import streams_group_member_metadata as member_record
from pybroker.protocol.messages.group_records import streams_group_metadata as metadata_record
from pybroker.protocol.messages.group_records import streams_group_target_assignment_member as target_record
from pybroker.protocol.messages.group_records import streams_group_target_assignment_metadata as target_epoch_record
from pybroker.protocol.messages.group_records import streams_group_topology as topology_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pybroker.coordinator.group.streams.member import StreamsMember
    from pybroker.coordinator.group.streams.tasks import ActiveTasks, Tasks, TaskSet
    from pybroker.coordinator.group.streams.topology import InternalTopic, Topology


def build_member(group_id: str, member: StreamsMember) -> GroupRecord:
    """Return the record of a member's metadata."""
    endpoint = member.endpoint
    value = member_record.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else member_record.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[member_record.KeyValue(key=key, value=tag) for key, tag in sorted(member.client_tags.items())],
    )
    key = member_record.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return GroupRecord(key, value)


def build_current(group_id: str, member: StreamsMember) -> GroupRecord:
    """Return the record of a member's current assignment."""
    value = current_record.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_active(member.assigned.active),
        standby_tasks=_current(member.assigned.standby),
        warmup_tasks=_current(member.assigned.warmup),
        active_tasks_pending_revocation=_active(member.revoking.active),
        standby_tasks_pending_revocation=_current(member.revoking.standby),
        warmup_tasks_pending_revocation=_current(member.revoking.warmup),
    )
    key = current_record.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return GroupRecord(key, value)


def build_target(group_id: str, member_id: str, target: Tasks) -> GroupRecord:
    """Return the record of a member's target assignment."""
    value = target_record.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target(target.active), standby_tasks=_target(target.standby), warmup_tasks=_target(target.warmup)
    )
    return GroupRecord(
        target_record.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value
    )


def build_target_epoch(group_id: str, epoch: int, now: int) -> GroupRecord:
    """Return the record of the target assignment's epoch."""
    value = target_epoch_record.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=now
    )
    return GroupRecord(target_epoch_record.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def build_epoch(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    *,
    validated_topology_epoch: int,
    configs: Mapping[str, str],
    description_epochs: tuple[int, int],
) -> GroupRecord:
    """Return the record of the group's epoch."""
    stored, failed = description_epochs
    value = metadata_record.StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            metadata_record.LastAssignmentConfig(key=key, value=text) for key, text in sorted(configs.items())
        ],
        stored_description_topology_epoch=stored,
        failed_description_topology_epoch=failed,
    )
    return GroupRecord(metadata_record.StreamsGroupMetadataKey(group_id=group_id), value)


def build_topology_record(group_id: str, topology: Topology) -> GroupRecord:
    """Return the record of the group's topology."""
    value = topology_record.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            topology_record.Subtopology(
                subtopology_id=part.id,
                source_topics=list(part.source_topics),
                source_topic_regex=list(part.source_topic_regex),
                state_changelog_topics=_topics(part.state_changelog_topics),
                repartition_sink_topics=list(part.repartition_sink_topics),
                repartition_source_topics=_topics(part.repartition_source_topics),
                copartition_groups=[
                    topology_record.CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in part.copartition_groups
                ],
            )
            for part in topology.subtopologies
        ],
    )
    return GroupRecord(topology_record.StreamsGroupTopologyKey(group_id=group_id), value)


def build_member_tombstones(group_id: str, member_id: str) -> Iterator[GroupRecord]:
    """Yield the records that delete a member."""
    yield _current_tombstone(group_id, member_id)
    yield _target_tombstone(group_id, member_id)
    yield _member_tombstone(group_id, member_id)


def build_group_tombstones(group_id: str, member_ids: Iterable[str]) -> Iterator[GroupRecord]:
    """Yield the records that delete a group."""
    members = tuple(member_ids)
    yield from (_current_tombstone(group_id, member_id) for member_id in members)
    yield from (_target_tombstone(group_id, member_id) for member_id in members)
    yield GroupRecord(target_epoch_record.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    yield from (_member_tombstone(group_id, member_id) for member_id in members)
    yield GroupRecord(metadata_record.StreamsGroupMetadataKey(group_id=group_id), None)
    yield GroupRecord(topology_record.StreamsGroupTopologyKey(group_id=group_id), None)


def _current_tombstone(group_id: str, member_id: str) -> GroupRecord:
    key = current_record.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return GroupRecord(key, None)


def _target_tombstone(group_id: str, member_id: str) -> GroupRecord:
    key = target_record.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return GroupRecord(key, None)


def _member_tombstone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(member_record.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def _active(tasks: ActiveTasks) -> list[current_record.TaskIds]:
    found = []
    for part, epochs in sorted(tasks.items()):
        in_order = dict(sorted(epochs.items()))
        ids = current_record.TaskIds(
            subtopology_id=part, partitions=list(in_order), assignment_epochs=list(in_order.values())
        )
        found.append(ids)
    return found


def _current(tasks: TaskSet) -> list[current_record.TaskIds]:
    return [
        current_record.TaskIds(subtopology_id=part, partitions=sorted(indexes))
        for part, indexes in sorted(tasks.items())
    ]


def _target(tasks: TaskSet) -> list[target_record.TaskIds]:
    return [
        target_record.TaskIds(subtopology_id=part, partitions=sorted(indexes))
        for part, indexes in sorted(tasks.items())
    ]


def _topics(topics: Iterable[InternalTopic]) -> list[topology_record.TopicInfo]:
    return [
        topology_record.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[topology_record.TopicConfig(key=key, value=value) for key, value in topic.configs],
        )
        for topic in topics
    ]
