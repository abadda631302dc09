"""DeleteTopics: deletes topics with their records.

Key
    20

Versions
    1-6

Behaviour
    - Each topic succeeds or fails independently. The response is sent when this broker does not serve the topics any
      more. Their directories are renamed at once and removed in the background.
    - UNKNOWN_TOPIC_OR_PARTITION by name, UNKNOWN_TOPIC_ID by id; INVALID_REQUEST for a topic that occurs twice, or with
      both name and id.
    - TOPIC_DELETION_DISABLED with delete.topic.enable=false, before version 3 INVALID_REQUEST.
    - Partitions beyond the client's controller_mutation_rate are rejected with THROTTLING_QUOTA_EXCEEDED and a throttle
      time (KIP-599). Other errors have precedence.

Version notes
    - By name in versions 1-5; by name or id in 6.

Not done
    - timeout_ms is ignored.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import DeletedTopic
from pybroker.handlers.errors import WireError
from pybroker.handlers.mutations import within_quota
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from pybroker.protocol.schema import ZERO_UUID
from pybroker.security.mutation_quotas import with_throttle_time
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.handlers.context import RequestContext
    from pybroker.machine.slices import Sliced

_FIRST_VERSION_WITH_DELETION_DISABLED = 3
"""Clients of earlier versions do not know the error."""


_FIRST_VERSION_WITH_THROTTLING = 5
"""The first version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def _failed(request: DeleteTopicsRequest, _version: int, error: WireError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[_result(topic.name, topic.topic_id, error) for topic in _requested(request)])


def _requested(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]


def _result(name: str | None, topic_id: bytes, error: WireError) -> DeletableTopicResult:
    message = None if error.code is ErrorCode.NONE else error.message or error.code.message
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=message)


@handles(
    DeleteTopicsRequest,
    requires=[
        of_items(
            Operation.DELETE,
            ResourceType.TOPIC,
            select(DeleteTopicsRequest.topics, DeleteTopicState.name),
            select(DeleteTopicsRequest.topics, DeleteTopicState.topic_id),
            select(DeleteTopicsRequest.topic_names),
            unless=Operation.DELETE,
        ),
        of_items(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            select(DeleteTopicsRequest.topics, DeleteTopicState.name),
            select(DeleteTopicsRequest.topics, DeleteTopicState.topic_id),
            select(DeleteTopicsRequest.topic_names),
            unless=Operation.DELETE,
        ),
    ],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def delete_topics(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    """Delete the existing topics, and wait until this broker does not serve them."""
    services = context.services
    if not services.config.delete_topic_enable:
        is_known = context.version >= _FIRST_VERSION_WITH_DELETION_DISABLED
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
        return _failed(request, context.version, WireError(code, None))
    responses, wanted = await services.slices.run(_sort_out(_requested(request)))
    times = Counter(wanted)
    results, wait_ms = await within_quota(
        context,
        wanted,
        weigh=lambda topic: _partitions(topic, context) if times[topic] == 1 else 0,
        strict_since=_FIRST_VERSION_WITH_THROTTLING,
        do=services.controller.own().delete_topics,
        check=partial(_there, context),
    )
    await services.publisher.published(services.image().offset)
    deleted = {}  # a topic that occurs more than once has one result
    for result in results:
        error = WireError(result.error_code, result.error_message)
        deleted[result.name, result.topic_id] = _result(result.name, result.topic_id, error)
    return with_throttle_time(DeleteTopicsResponse(responses=[*responses, *deleted.values()]), wait_ms)


def _partitions(topic: str | bytes, context: RequestContext) -> int:
    topics = context.image.topics
    known = topics.by_name.get(topic) if isinstance(topic, str) else topics.by_id.get(topic)
    return 0 if known is None else len(known.partitions)


async def _there(context: RequestContext, topics: Sequence[str | bytes]) -> list[DeletedTopic]:
    """Return the names and ids of existing topics."""
    known = context.image.topics
    return [
        DeletedTopic(topic, known.by_name[topic].topic_id)
        if isinstance(topic, str)
        else DeletedTopic(known.by_id[topic].name, topic)
        for topic in topics
    ]


def _sort_out(requested: list[DeleteTopicState]) -> Sliced[tuple[list[DeletableTopicResult], list[str | bytes]]]:
    """Return the results of invalid entries, and the topics to delete by name or id."""
    refused: list[DeletableTopicResult] = []
    wanted: list[str | bytes] = []
    for topic in requested:
        yield
        if topic.name is None and topic.topic_id == ZERO_UUID:
            error = WireError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
            refused.append(_result(None, ZERO_UUID, error))
        elif topic.name is not None and topic.topic_id != ZERO_UUID:
            error = WireError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
            refused.append(_result(topic.name, topic.topic_id, error))
        else:
            wanted.append(topic.topic_id if topic.name is None else topic.name)
    return refused, wanted
