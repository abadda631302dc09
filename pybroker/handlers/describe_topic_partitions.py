"""DescribeTopicPartitions: describes topics and their partitions, with paging for large clusters.

Key
    75

Versions
    0-0

Behaviour
    - Topics are returned in the order of their names, each once. An empty list means all topics (KIP-966).
    - A response has at most response_partition_limit partitions, which is limited to between 1 and
      max.request.partition.size.limit. If more remain, next_cursor is the next topic and partition, from which a
      request with that cursor continues.
    - With all topics, a deleted topic of the cursor is skipped. INVALID_REQUEST for each topic of the request if the
      cursor's topic is not in the request, or its partition is negative.
    - UNKNOWN_TOPIC_OR_PARTITION for an unknown topic, INVALID_TOPIC_EXCEPTION for an invalid name.
    - A partition without a reachable leader has leader -1 and no error. A replica is offline if its broker is fenced or
      unknown, or its log directory has failed.
    - Eligible leader replicas and the last known leader are from the metadata (KIP-966). There are none if
      eligible.leader.replicas.version is 0; the last in-sync replica then stays in the ISR.

Version notes
    - None.

Not done
    - An empty name is rejected with INVALID_TOPIC_EXCEPTION; Kafka fails such a request with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.topic_names import name_fault
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.handlers.topic_metadata import broker_addresses
from pybroker.metadata.image import NO_LEADER
from pybroker.metadata.internal_topics import INTERNAL_TOPICS
from pybroker.metadata.replica_directories import directories_by_broker, offline_replicas
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from pybroker.security.authorizer import authorized_operations
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.image import PartitionImage, TopicImage


def _failed(
    request: DescribeTopicPartitionsRequest, _version: int, error: WireError
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=error.code) for topic in request.topics
        ]
    )


@handles(
    DescribeTopicPartitionsRequest,
    requires=[
        of_items(
            Operation.DESCRIBE, ResourceType.TOPIC, select(DescribeTopicPartitionsRequest.topics, TopicRequest.name)
        ),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC, when="all topics are asked for"),
    ],
    failed=_failed,
    authorizes_itself=True,
)
def describe_topic_partitions(request: DescribeTopicPartitionsRequest, context: BrokerContext) -> Reply:
    """Describe partitions from the cursor on, up to the limit."""
    return context.services.slices.run(_describe_all(request, context))


def _describe_all(
    request: DescribeTopicPartitionsRequest, context: BrokerContext
) -> Sliced[DescribeTopicPartitionsResponse]:
    names = _names(request, context)
    allowed = context.services.config.max_request_partition_size_limit
    capacity = max(1, min(allowed, request.response_partition_limit))
    first = {} if request.cursor is None else {request.cursor.topic_name: request.cursor.partition_index}
    describe = _Describer(context)
    response = DescribeTopicPartitionsResponse(topics=[])
    hides = context.authorizer is not None
    for name in names:
        yield
        if hides and not may(context, Operation.DESCRIBE, ResourceType.TOPIC, name, is_requested=bool(request.topics)):
            # Topics of the request are rejected without revealing whether they exist; others are omitted.
            if request.topics:
                response.topics.append(_hidden(name))
            continue
        if capacity == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        begin = first.get(name, 0)
        topic = context.image.topics.by_name.get(name)
        if topic is None:
            response.topics.append(_unknown(name, describe.operations(name)))
            continue
        described = describe(topic, begin, capacity)
        response.topics.append(described)
        capacity -= len(described.partitions)
        end = begin + len(described.partitions)
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return response


def _names(request: DescribeTopicPartitionsRequest, context: BrokerContext) -> list[str]:
    """Return the names to describe from the cursor on, in order. Raises ApiError for an invalid cursor."""
    cursor = request.cursor
    requested = {topic.name for topic in request.topics}
    if cursor is not None:
        if requested and cursor.topic_name not in requested:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
            )
        if cursor.partition_index < 0:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor.partition_index}",
            )
    names = requested or context.image.topics.by_name
    # For ASCII names, the default order is the same.
    ordered = sorted(names, key=None if all(map(str.isascii, names)) else _order)
    if cursor is None:
        return ordered
    begin = _order(cursor.topic_name)
    return [name for name in ordered if _order(name) >= begin]


def _order(name: str) -> bytes:
    """Return the sort key of a name: its UTF-16 code units, as in Java."""
    return name.encode("utf-16-be", "surrogatepass")


def _hidden(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, is_internal=name in INTERNAL_TOPICS
    )


def _unknown(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    known = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeTopicPartitionsResponseTopic(
        error_code=known if name_fault(name) is None else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=operations,
    )


class _Describer:
    """Describes topics by one metadata image."""

    def __init__(self, context: BrokerContext) -> None:
        self._reachable = {broker.node_id for broker in broker_addresses(context)}
        self._working = directories_by_broker(context.image.cluster)
        self._context = context

    def operations(self, name: str) -> int:
        """Return the client's authorized operations on a topic."""
        return authorized_operations(self._context, ResourceType.TOPIC, name)

    def __call__(self, topic: TopicImage, begin: int, capacity: int) -> DescribeTopicPartitionsResponseTopic:
        """Describe up to `capacity` partitions."""
        end = min(len(topic.partitions), begin + capacity)
        return DescribeTopicPartitionsResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[self._partition(index, topic.partitions[index]) for index in range(begin, end)],
            topic_authorized_operations=self.operations(topic.name),
        )

    def _partition(self, index: int, partition: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
        return DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=partition.leader if partition.leader in self._reachable else NO_LEADER,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.isr),
            eligible_leader_replicas=list(partition.eligible_leader_replicas),
            last_known_elr=list(partition.last_known_elr),
            offline_replicas=offline_replicas(partition, self._working),
        )
