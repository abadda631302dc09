"""DescribeProducers: returns the active producers of partitions, and the start of their open transactions (KIP-664).

Key
    61

Versions
    0-0

Behaviour
    - The producers in the leader's producer state: idempotent and transactional ones that have written within
      producer.id.expiration.ms, and all with an open transaction.
    - A partition that occurs more than once is described once.
    - UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR per partition.

Version notes
    - None.

Not done
    - Nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError, wire_error
from pybroker.handlers.leaders import leading_partition
from pybroker.handlers.registry import handles
from pybroker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select
from pybroker.storage.native import active_producers

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced

_ANY_EPOCH = -1
_SLICE = 200
"""Number of producers described between two yields."""


def _failed(request: DescribeProducersRequest, _version: int, error: WireError) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_refused(index, error) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _refused(index: int, error: WireError) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)


@handles(
    DescribeProducersRequest,
    requires=[of_items(Operation.READ, ResourceType.TOPIC, select(DescribeProducersRequest.topics, TopicRequest.name))],
    failed=_failed,
)
def describe_producers(request: DescribeProducersRequest, context: BrokerContext) -> Reply:
    """Describe each partition independently."""
    return context.services.slices.run(_look_up_all(request, context))


def _look_up_all(request: DescribeProducersRequest, context: BrokerContext) -> Sliced[DescribeProducersResponse]:
    requested: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        requested.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    topics = []
    for name, indexes in requested.items():
        partitions = []
        for index in indexes:
            described = yield from _describe(name, index, context)
            partitions.append(described)
        topics.append(TopicResponse(name=name, partitions=partitions))
    return DescribeProducersResponse(topics=topics)


def _describe(topic: str, index: int, context: BrokerContext) -> Sliced[PartitionResponse]:
    try:
        partition = leading_partition(topic, index, _ANY_EPOCH, context)
    except ApiError as error:
        yield
        return _refused(index, wire_error(error))
    producers = []
    for number, (producer_id, epoch, last_sequence, last_timestamp, coordinator_epoch, first_offset) in enumerate(
        active_producers(partition)
    ):
        if number % _SLICE == 0:
            yield
        producers.append(
            ProducerState(
                producer_id=producer_id,
                producer_epoch=epoch,
                last_sequence=last_sequence,
                last_timestamp=last_timestamp,
                coordinator_epoch=coordinator_epoch,
                current_txn_start_offset=first_offset,
            )
        )
    yield
    return PartitionResponse(partition_index=index, active_producers=producers)
