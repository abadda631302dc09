"""CreateTopics: creates topics.

Key
    19

Versions
    2-7

Behaviour
    - Each topic succeeds or fails independently. A name that occurs twice is rejected with INVALID_REQUEST, and
      __cluster_metadata with TOPIC_AUTHORIZATION_FAILED. More than 10,000 partitions: POLICY_VIOLATION for every topic.
    - A partition count or replication factor of -1 means the broker's num.partitions or default.replication.factor.
    - The response is sent when the topics are committed and their logs on this broker are open, so that the client's
      next request finds them. If a log cannot be opened, KAFKA_STORAGE_ERROR with the reason, although the topic
      exists. After a lack of descriptors or memory, the logs are opened later.
    - With more than 100 new partitions, the response is sent when they are committed and Metadata returns their
      leaders, as in Kafka (ADR 0095). Produce and Fetch requests that arrive before their logs are open are delayed.
      Other requests receive NOT_LEADER_OR_FOLLOWER meanwhile. Failures to open a log are in the broker's log file.
    - Errors: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
      INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, each with a message.
    - validate_only does everything but the creation.
    - Partitions beyond the client's controller_mutation_rate are rejected with THROTTLING_QUOTA_EXCEEDED and a throttle
      time (KIP-599). Other errors have precedence.

Version notes
    - Partition count, replication factor and configuration are returned since version 5, the topic id since 7.

Not done
    - create.topic.policy.class.name.
    - timeout_ms is ignored: the response waits for the creation.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from pybroker.config.topic import TopicConfig
from pybroker.handlers.authorizing import may
from pybroker.handlers.config_entries import topic_entries
from pybroker.handlers.errors import WireError
from pybroker.handlers.mutations import within_quota
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pybroker.security.mutation_quotas import with_throttle_time
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.controller.cluster.events import CreatedTopic
    from pybroker.handlers.context import RequestContext
    from pybroker.machine.slices import Sliced


_FIRST_VERSION_WITH_THROTTLING = 6
"""The first version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

_LOGS_AWAITED = 100
"""Maximum new partitions for which a response waits until their logs are created.

Creating a log takes two syncs of some milliseconds each on a disk: a thousand logs would delay the response for
seconds.
"""


def _failed(request: CreateTopicsRequest, _version: int, error: WireError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_failed_topic(topic.name, error) for topic in request.topics])


def _failed_topic(name: str, error: WireError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message or error.code.message, configs=[]
    )


@handles(
    CreateTopicsRequest,
    requires=[
        of_items(
            Operation.CREATE,
            ResourceType.TOPIC,
            select(CreateTopicsRequest.topics, CreatableTopic.name),
            unless=Operation.CREATE,
        ),
        of_response(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
    ],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def create_topics(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Create the valid topics, and wait until this broker serves them, unless they have many partitions."""
    services = context.services
    times = Counter(topic.name for topic in request.topics)
    results, wait_ms = await within_quota(
        context,
        request.topics,
        weigh=lambda topic: _partitions(topic, context) if times[topic.name] == 1 else 0,
        strict_since=_FIRST_VERSION_WITH_THROTTLING,
        do=partial(services.controller.own().create_topics, validate_only=request.validate_only),
        check=partial(services.controller.own().create_topics, validate_only=True),
    )
    made = sum(result.num_partitions for result in results if result.error_code == ErrorCode.NONE)
    if not request.validate_only and made <= _LOGS_AWAITED:
        await services.publisher.published(services.image().offset)
    topics = await services.slices.run(_described(request, results, context))
    return with_throttle_time(CreateTopicsResponse(topics=topics), wait_ms)


def _partitions(topic: CreatableTopic, context: RequestContext) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return context.services.config.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _described(
    request: CreateTopicsRequest, results: list[CreatedTopic], context: RequestContext
) -> Sliced[list[CreatableTopicResult]]:
    """Return the result of every topic. A topic that occurs more than once has one result."""
    described: dict[str, CreatableTopicResult] = {}
    for topic, result in zip(request.topics, results, strict=True):
        yield
        if result.name not in described:
            described[result.name] = _describe(topic, result, context, validate_only=request.validate_only)
    return list(described.values())


def _describe(
    topic: CreatableTopic, result: CreatedTopic, context: RequestContext, *, validate_only: bool
) -> CreatableTopicResult:
    if result.error_code != ErrorCode.NONE:
        return _failed_topic(result.name, WireError(result.error_code, result.error_message))
    failure = None if validate_only else context.services.publisher.failure_of(result.name)
    if failure is not None:
        words = f"topic {result.name} was created, but {failure}"
        return _failed_topic(result.name, WireError(ErrorCode.KAFKA_STORAGE_ERROR, words))
    if not may(context, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, result.name, is_requested=False):
        return CreatableTopicResult(
            name=result.name,
            topic_id=result.topic_id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            num_partitions=-1,
            replication_factor=-1,
            configs=[],
        )
    configs = {config.name: config.value or "" for config in topic.configs}
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_message=None,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=_configs(TopicConfig(configs, context.services.config)),
    )


def _configs(topic: TopicConfig) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in topic_entries(topic, whole_chain=True)
    ]
