"""CreateTopics: new topics.

Key
    19

Versions
    2-7

Behaviour
    - Each topic succeeds or fails by itself; a name that the request has twice fails as INVALID_REQUEST.
    - A partition count or replication factor of -1 is the broker's num.partitions or default.replication.factor.
    - A success is answered when the topic is committed and its logs on this broker are open, so that the next request
      of the same client finds it. Where they cannot be opened the answer is KAFKA_STORAGE_ERROR with the reason; the
      topic exists then, and logs that lacked descriptors or memory are opened when there are some.
    - Errors: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
      INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, each with words from version 1 on.
    - validate_only does everything but the creation.

Version notes
    - Partition count, replication factor and configuration are returned from version 5 on, the id from 7 on.

Not done
    - Rights, controller mutation quotas (KIP-599), create.topic.policy.class.name.
    - timeout_ms is not looked at: creation takes as long as it takes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pybroker.config.errors import ConfigError
from pybroker.config.topic import TopicConfig
from pybroker.controller.cluster.partitions import MAX_PARTITIONS_PER_REQUEST
from pybroker.handlers.config_entries import topic_entries
from pybroker.handlers.errors import WireError
from pybroker.handlers.registry import handles
from pybroker.machine.slices import each
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_answer, of_items

if TYPE_CHECKING:
    from pybroker.controller.cluster.events import CreatedTopic
    from pybroker.handlers.context import RequestContext
    from pybroker.machine.slices import Sliced

_METADATA_TOPIC = "__cluster_metadata"


def _failed(request: CreateTopicsRequest, _version: int, error: WireError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_failed_topic(topic.name, error) for topic in request.topics])


def _failed_topic(name: str, error: WireError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message or error.code.message, configs=[]
    )


@handles(
    CreateTopicsRequest,
    requires=[
        of_items(Operation.CREATE, ResourceType.TOPIC, "topics.name", unless=Operation.CREATE),
        of_answer(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
    ],
    failed=_failed,
)
async def create_topics(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Create the topics that are well-formed, and wait until this broker serves them."""
    slices = context.services.slices
    excess = _excess(request.topics, context)
    if excess is not None:
        refusals = each(lambda topic: _failed_topic(topic.name, excess), request.topics)
        return CreateTopicsResponse(topics=await slices.run(refusals))
    refused, topics = await slices.run(_sort_out(request.topics, context))
    results = await context.services.controller.create_topics(topics, validate_only=request.validate_only)
    if not request.validate_only:
        await context.services.publisher.published(context.services.image().offset)
    created = await slices.run(_created(topics, results, context, validate_only=request.validate_only))
    return CreateTopicsResponse(topics=[*refused, *created])


def _excess(topics: list[CreatableTopic], context: RequestContext) -> WireError | None:
    """Return the error of a request for too many partitions, before anything else of it is looked at."""
    default = context.services.config.num_partitions
    wanted = sum(
        len(topic.assignments) or (default if topic.num_partitions == -1 else max(topic.num_partitions, 0))
        for topic in topics
    )
    if wanted <= MAX_PARTITIONS_PER_REQUEST:
        return None
    words = f"Excessively large number of partitions per request: {wanted}, at most {MAX_PARTITIONS_PER_REQUEST}."
    return WireError(ErrorCode.POLICY_VIOLATION, words)


def _created(
    topics: list[CreatableTopic], results: list[CreatedTopic], context: RequestContext, *, validate_only: bool
) -> Sliced[list[CreatableTopicResult]]:
    overrides = {topic.name: topic.configs for topic in topics}
    created = []
    for result in results:
        yield
        if result.error_code != ErrorCode.NONE:
            created.append(_failed_topic(result.name, WireError(result.error_code, result.error_message)))
            continue
        failure = None if validate_only else context.services.publisher.failure_of(result.name)
        if failure is not None:
            error = WireError(ErrorCode.KAFKA_STORAGE_ERROR, f"topic {result.name} was created, but {failure}")
            created.append(_failed_topic(result.name, error))
            continue
        configs = {config.name: config.value or "" for config in overrides[result.name]}
        created.append(
            CreatableTopicResult(
                name=result.name,
                topic_id=result.topic_id,
                error_message=None,
                num_partitions=result.num_partitions,
                replication_factor=result.replication_factor,
                configs=_configs(TopicConfig(configs, context.services.config)),
            )
        )
    return created


def _sort_out(
    topics: list[CreatableTopic], context: RequestContext
) -> Sliced[tuple[list[CreatableTopicResult], list[CreatableTopic]]]:
    """Return the answers to topics that cannot be, and the topics that the controller is asked to create."""
    times = Counter(topic.name for topic in topics)
    refused, wanted = {}, []
    for topic in topics:
        yield
        error = _refusal(topic, times[topic.name], context)
        if error is None:
            wanted.append(topic)
        else:
            refused[topic.name] = _failed_topic(topic.name, error)
    return list(refused.values()), wanted


def _refusal(topic: CreatableTopic, times: int, context: RequestContext) -> WireError | None:
    if times > 1:
        return WireError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if topic.name == _METADATA_TOPIC:
        return WireError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    missing = next((config.name for config in topic.configs if config.value is None), None)
    if missing is not None:
        return WireError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {missing}")
    try:
        TopicConfig({config.name: config.value or "" for config in topic.configs}, context.services.config)
    except ConfigError as error:
        return WireError(ErrorCode.INVALID_CONFIG, str(error))
    return None


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
