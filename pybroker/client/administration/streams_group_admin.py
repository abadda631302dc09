"""Admin's call that describes streams groups (KIP-1071).

Owns the conversion of the response. `AsyncAdmin` inherits the call. The other calls about groups are in `group_admin`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pybroker.client.administration.group_admin import GroupCalls
from pybroker.client.administration.streams_groups import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsTasks,
    StreamsTopic,
    SubtopologyDescription,
)
from pybroker.client.network.cluster import retried
from pybroker.client.network.connection import Connection
from pybroker.protocol.messages import streams_group_describe as message


class StreamsGroupCalls(GroupCalls):
    """The call about streams groups over one cluster."""

    @retried
    async def describe_streams_groups(self, group_ids: Sequence[str]) -> dict[str, StreamsGroupDescription]:
        """Describe streams groups, their members and their topologies.

        Raises BrokerError for the first group that was rejected, and UnservedApiError if the broker has no streams
        groups.
        """
        return {group_id: await self._describe_streams_group(group_id) for group_id in dict.fromkeys(group_ids)}

    async def _describe_streams_group(self, group_id: str) -> StreamsGroupDescription:
        async def query(connection: Connection) -> tuple[message.DescribedGroup, int]:
            request = message.StreamsGroupDescribeRequest(group_ids=[group_id])
            (group,) = (await connection.query(request, message.StreamsGroupDescribeResponse)).groups
            return group, group.error_code

        group = await self.cluster.query_coordinator(group_id, query)
        if group.error_code:
            raise self._refusal(group_id, f"group {group_id!r}", group.error_code)
        topology = group.topology
        return StreamsGroupDescription(
            group_id=group_id,
            state=group.group_state,
            group_epoch=group.group_epoch,
            target_epoch=group.assignment_epoch,
            topology_epoch=-1 if topology is None else topology.epoch,
            subtopologies=tuple(
                _subtopology(part) for part in (() if topology is None else topology.subtopologies or ())
            ),
            members=tuple(_member(member) for member in group.members),
            coordinator=await self._coordinator(group_id),
            assignor=group.assignor_name,
        )


def _member(member: message.Member) -> StreamsMemberDescription:
    endpoint = member.user_endpoint
    return StreamsMemberDescription(
        member_id=member.member_id,
        epoch=member.member_epoch,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        process_id=member.process_id,
        topology_epoch=member.topology_epoch,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        assignment=_tasks(member.assignment),
        target=_tasks(member.target_assignment),
        is_classic=member.is_classic,
    )


def _tasks(assignment: message.Assignment) -> StreamsTasks:
    return StreamsTasks(
        _by_part(assignment.active_tasks), _by_part(assignment.standby_tasks), _by_part(assignment.warmup_tasks)
    )


def _by_part(tasks: Iterable[message.TaskIds]) -> dict[str, tuple[int, ...]]:
    return {one.subtopology_id: tuple(one.partitions) for one in tasks}


def _subtopology(part: message.Subtopology) -> SubtopologyDescription:
    return SubtopologyDescription(
        id=part.subtopology_id,
        source_topics=tuple(part.source_topics),
        repartition_sink_topics=tuple(part.repartition_sink_topics),
        repartition_source_topics=_topics(part.repartition_source_topics),
        state_changelog_topics=_topics(part.state_changelog_topics),
    )


def _topics(topics: Iterable[message.TopicInfo]) -> tuple[StreamsTopic, ...]:
    return tuple(StreamsTopic(topic.name, topic.partitions) for topic in topics)
