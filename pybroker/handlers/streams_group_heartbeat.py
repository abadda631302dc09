"""StreamsGroupHeartbeat: a member of a Kafka Streams application joins, keeps its session, reconciles and leaves.

Key
    88

Versions
    0-1

Behaviour
    - Epoch 0 joins with the topology, -1 leaves, -2 leaves temporarily as a static member. Omitted fields are
      unchanged. The response has the tasks if they have changed, or if the member joins.
    - Missing repartition and changelog topics are created with the counts and configs of the topology, if the client
      may create them. The response is sent afterwards; MISSING_INTERNAL_TOPICS contains the reason if that failed.
    - Other statuses: STALE_TOPOLOGY, MISSING_SOURCE_TOPICS, INCORRECTLY_PARTITIONED_TOPICS, SHUTDOWN_APPLICATION,
      ASSIGNMENT_DELAYED.
    - An empty classic group with the same id is replaced.
    - Errors: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY, GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
      UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS; UNSUPPORTED_VERSION while the feature `streams.version` is below 1.

Version notes
    - Since version 1, the acceptable recovery lag is an int64.

Not done
    - Topology descriptions: they are never requested. Patterns of source topics and changed topologies are rejected, as
      in Kafka. Assignment by client tags. No task is warmed up, as in Kafka 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.topic_names import name_fault
from pybroker.coordinator.group.events import Client, StreamsHeartbeat
from pybroker.coordinator.group.streams.configuration import creatable
from pybroker.coordinator.group.streams.status import StatusCode
from pybroker.coordinator.group.streams.topology import topic_names
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.metadata.features import STREAMS_VERSION
from pybroker.metadata.internal_topics import INTERNAL_TOPICS
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)
from pybroker.security.authorizer import allowed
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.requirements import of_request, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.coordinator.group.streams.reply import StreamsReply
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError

_PARTS = (StreamsGroupHeartbeatRequest.topology, Topology.subtopologies)


def _failed(_request: StreamsGroupHeartbeatRequest, _version: int, error: WireError) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


@handles(
    StreamsGroupHeartbeatRequest,
    requires=[
        of_request(Operation.READ, ResourceType.GROUP, select(StreamsGroupHeartbeatRequest.group_id)),
        of_request(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            select(*_PARTS, Subtopology.source_topics),
            select(*_PARTS, Subtopology.repartition_sink_topics),
            select(*_PARTS, Subtopology.repartition_source_topics, TopicInfo.name),
            select(*_PARTS, Subtopology.state_changelog_topics, TopicInfo.name),
        ),
        of_response(
            Operation.CREATE, ResourceType.TOPIC, unless=Operation.CREATE, when="internal topics of it are missing"
        ),
    ],
    failed=_failed,
)
async def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, context: BrokerContext
) -> StreamsGroupHeartbeatResponse:
    """Pass the heartbeat to the group's coordinator, and create the internal topics that are missing."""
    if context.image.features.levels.get(STREAMS_VERSION, 0) < 1:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if not request.group_id.strip():  # an empty group id has no coordinator, so every broker rejects it
        raise ApiError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    if request.topology is not None:
        _check_names(topic_names(request.topology))
    client = Client(context.client_id or "", f"/{context.client_host}")
    event = StreamsHeartbeat(request, context.version, client)
    reply: StreamsReply = await context.services.groups.submit(request.group_id, event)
    if reply.missing:
        _add_detail(reply.response, await _create(reply, context))
    return reply.response


def _check_names(names: list[str]) -> None:
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        listed = ",".join(internal)
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {listed} in a Kafka Streams topology is prohibited.",
        )
    invalid = [name for name in names if name_fault(name) is not None]
    if invalid:
        listed = ",".join(invalid)
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, f"Topic names {listed} are not valid topic names.")


async def _create(reply: StreamsReply, context: BrokerContext) -> str:
    """Create the missing topics with the client's rights; return what failed, empty if nothing did."""
    if not allowed(context, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, is_requested=False):
        denied = [
            topic.name for topic in reply.missing if not may(context, Operation.CREATE, ResourceType.TOPIC, topic.name)
        ]
        if denied:
            return f"Unauthorized to CREATE on topics {', '.join(denied)}."
    services = context.services
    results = await services.controller.active().create_topics([creatable(topic) for topic in reply.missing])
    await services.publisher.published(services.image().offset)
    failed = [
        f"{result.name} ({result.error_message or ErrorCode(result.error_code).name})"
        for result in results
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    ]
    return f"Creation failed: {', '.join(failed)}." if failed else ""


def _add_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    if detail:
        for status in response.status or ():
            if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
                status.status_detail = f"{status.status_detail}; {detail}"
