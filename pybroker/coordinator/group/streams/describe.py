"""StreamsGroupDescribe: the state of groups, their topology, members and assignments.

Owns the format of the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import GroupIdNotFoundError, StreamsInvalidTopologyError
from pybroker.coordinator.group.reconciled.membership import find_group
from pybroker.coordinator.group.streams.configuration import configure
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.offsets import NO_OFFSETS
from pybroker.coordinator.group.streams.tasks import NO_TASKS, without_epochs
from pybroker.machine.machine import Outcome
from pybroker.protocol.messages import streams_group_describe as message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.coordinator.group.events import DescribeStreamsGroups
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.streams.configuration import ConfiguredSubtopology, ConfiguredTopic
    from pybroker.coordinator.group.streams.member import StreamsMember
    from pybroker.coordinator.group.streams.tasks import TaskSet
    from pybroker.coordinator.group.streams.topology import InternalTopic, Subtopology
    from pybroker.coordinator.group.view import GroupView

_NOT_STORED = 1


def describe(view: GroupView, event: DescribeStreamsGroups, _now: int) -> Outcome[Record, list[message.DescribedGroup]]:
    """Describe groups, each by itself."""
    described = [_describe(view, group_id) for group_id in event.group_ids]
    if event.includes_description:
        for group in described:
            if group.topology is not None:
                group.topology_description_status = _NOT_STORED
    return Outcome((), described)


def _describe(view: GroupView, group_id: str) -> message.DescribedGroup:
    try:
        group = find_group(view, group_id, StreamsGroup)
    except GroupIdNotFoundError as error:
        return message.DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    return message.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(view, group),
        members=[_member(group, member) for _, member in sorted(group.members.items())],
        assignor_name=view.streams_settings(group_id).assignor,
    )


def _topology(view: GroupView, group: StreamsGroup) -> message.Topology | None:
    """Return the topology with decided partition counts if all its topics are there, else as the member sent it."""
    topology = group.topology
    if topology is None:
        return None
    parts: Iterable[ConfiguredSubtopology | Subtopology] = topology.subtopologies
    try:
        configured = configure(topology, view.topics)
    except StreamsInvalidTopologyError:
        configured = None
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        parts = configured.subtopologies.values()
    return message.Topology(epoch=topology.epoch, subtopologies=[_subtopology(part) for part in parts])


def _subtopology(part: ConfiguredSubtopology | Subtopology) -> message.Subtopology:
    return message.Subtopology(
        subtopology_id=part.id,
        source_topics=sorted(part.source_topics),
        repartition_sink_topics=sorted(part.repartition_sink_topics),
        state_changelog_topics=_topics(part.state_changelog_topics),
        repartition_source_topics=_topics(part.repartition_source_topics),
    )


def _topics(topics: Iterable[ConfiguredTopic | InternalTopic]) -> list[message.TopicInfo]:
    return [
        message.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[message.KeyValue(key=key, value=value) for key, value in topic.configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> message.Member:
    endpoint = member.endpoint
    offsets = group.task_offsets.get(member.member_id, NO_OFFSETS)
    held, target = member.assigned, group.targets.get(member.member_id, NO_TASKS)
    return message.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else message.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[message.KeyValue(key=key, value=tag) for key, tag in sorted(member.client_tags.items())],
        task_offsets=_offsets(offsets.current),
        task_end_offsets=_offsets(offsets.end),
        assignment=_assignment(without_epochs(held.active), held.standby, held.warmup),
        target_assignment=_assignment(target.active, target.standby, target.warmup),
    )


def _assignment(active: TaskSet, standby: TaskSet, warmup: TaskSet) -> message.Assignment:
    return message.Assignment(active_tasks=_tasks(active), standby_tasks=_tasks(standby), warmup_tasks=_tasks(warmup))


def _tasks(tasks: TaskSet) -> list[message.TaskIds]:
    return [message.TaskIds(subtopology_id=part, partitions=sorted(indexes)) for part, indexes in sorted(tasks.items())]


def _offsets(offsets: Mapping[str, Mapping[int, int]]) -> list[message.TaskOffset]:
    return [
        message.TaskOffset(subtopology_id=part, partition=index, offset=offset)
        for part, of_part in sorted(offsets.items())
        for index, offset in sorted(of_part.items())
    ]
