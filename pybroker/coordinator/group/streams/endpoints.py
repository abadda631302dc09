"""The partitions of each endpoint, for interactive queries.

Owns their computation: the source partitions of the tasks of each member with an endpoint. A client queries the process
that has the state of a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.streams.tasks import without_epochs
from pybroker.protocol.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pybroker.coordinator.group.streams.configuration import ConfiguredSubtopology
    from pybroker.coordinator.group.streams.group import StreamsGroup
    from pybroker.coordinator.group.streams.member import StreamsMember
    from pybroker.coordinator.group.streams.tasks import TaskSet
    from pybroker.coordinator.group.view import TopicInfo


def endpoint_partitions(
    group: StreamsGroup, parts: Mapping[str, ConfiguredSubtopology] | None, topics: Mapping[str, TopicInfo]
) -> list[EndpointToPartitions]:
    """Return one entry for each member with an endpoint. `parts` is None if the topology is not configured."""
    return [
        _partitions(member, member.endpoint, parts or {}, topics)
        for _, member in sorted(group.members.items())
        if member.endpoint is not None
    ]


def _partitions(
    member: StreamsMember,
    endpoint: tuple[str, int],
    parts: Mapping[str, ConfiguredSubtopology],
    topics: Mapping[str, TopicInfo],
) -> EndpointToPartitions:
    held = member.assigned
    copies = {
        part: held.standby.get(part, frozenset()) | held.warmup.get(part, frozenset())
        for part in held.standby.keys() | held.warmup.keys()
    }
    return EndpointToPartitions(
        user_endpoint=Endpoint(host=endpoint[0], port=endpoint[1]),
        active_partitions=list(_topic_partitions(without_epochs(held.active), parts, topics)),
        standby_partitions=list(_topic_partitions(copies, parts, topics)),
    )


def _topic_partitions(
    tasks: TaskSet, parts: Mapping[str, ConfiguredSubtopology], topics: Mapping[str, TopicInfo]
) -> Iterator[TopicPartition]:
    for part, indexes in sorted(tasks.items()):
        configured = parts.get(part)
        for name in dict.fromkeys(configured.inputs) if configured is not None else ():
            topic = topics.get(name)
            partitions = sorted(index for index in indexes if topic is not None and index < topic.partitions)
            if partitions:
                yield TopicPartition(topic=name, partitions=partitions)
