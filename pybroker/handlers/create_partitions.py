"""CreatePartitions: adds partitions to existing topics.

Key
    37

Versions
    0-3

Behaviour
    - Each topic succeeds or fails independently. A topic that occurs twice is rejected with INVALID_REQUEST.
    - New partitions have the replication factor of the existing ones. The controller places the replicas, or the
      request assigns them.
    - The response is sent when the partitions are committed and their logs on this broker are open. If a log cannot be
      opened, KAFKA_STORAGE_ERROR with the reason, although the partitions exist, as in CreateTopics.
    - Errors, with messages: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS for a count that is no increase,
      INVALID_REPLICA_ASSIGNMENT.
    - validate_only does everything but the creation.
    - Partitions beyond the client's controller_mutation_rate are rejected with THROTTLING_QUOTA_EXCEEDED and a throttle
      time (KIP-599). Other errors have precedence.

Version notes
    - None.

Not done
    - timeout_ms is ignored.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from pybroker.handlers.errors import WireError
from pybroker.handlers.mutations import within_quota
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from pybroker.security.mutation_quotas import with_throttle_time
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext


_FIRST_VERSION_WITH_THROTTLING = 3
"""The first version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def _failed(request: CreatePartitionsRequest, _version: int, error: WireError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[_result(topic.name, error) for topic in request.topics])


def _result(name: str, error: WireError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message)


@handles(
    CreatePartitionsRequest,
    requires=[
        of_items(
            Operation.ALTER, ResourceType.TOPIC, select(CreatePartitionsRequest.topics, CreatePartitionsTopic.name)
        )
    ],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def create_partitions(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    """Add the valid partitions, and wait until this broker serves them."""
    services = context.services
    known = services.image().topics.by_name
    before = {topic.name: len(known[topic.name].partitions) for topic in request.topics if topic.name in known}
    times = Counter(topic.name for topic in request.topics)
    enlarged, wait_ms = await within_quota(
        context,
        request.topics,
        weigh=lambda topic: max(topic.count - before.get(topic.name, topic.count), 0) if times[topic.name] == 1 else 0,
        strict_since=_FIRST_VERSION_WITH_THROTTLING,
        do=partial(services.controller.own().create_partitions, validate_only=request.validate_only),
        check=partial(services.controller.own().create_partitions, validate_only=True),
    )
    if not request.validate_only:
        await services.publisher.published(services.image().offset)
    results = {}  # a topic that occurs more than once has one result
    for topic in enlarged:
        error = WireError(topic.error_code, topic.error_message)
        done = topic.error_code == ErrorCode.NONE and not request.validate_only
        failure = services.publisher.failure_of(topic.name, before.get(topic.name, 0)) if done else None
        if failure is not None:
            error = WireError(ErrorCode.KAFKA_STORAGE_ERROR, f"the partitions were created, but {failure}")
        results[topic.name] = _result(topic.name, error)
    return with_throttle_time(CreatePartitionsResponse(results=list(results.values())), wait_ms)
