"""Metadata: returns the brokers, and the leaders and replicas of partitions.

Key
    3

Versions
    0-13

Behaviour
    - A null list of topics means all topics; an empty list means none (all in version 0).
    - UNKNOWN_TOPIC_ID for an unknown topic id, UNKNOWN_TOPIC_OR_PARTITION for an unknown name, INVALID_TOPIC_EXCEPTION
      for an invalid name.
    - UNKNOWN_TOPIC_OR_PARTITION for __cluster_metadata, also if the request allows topic creation.
    - An unknown topic by name is created if both the client and auto.create.topics.enable allow it. The response then
      describes it. A request creates at most auto.create.topics.max.per.request topics; the others stay unknown.
      __consumer_offsets is created with the offsets.topic settings, __transaction_state with those of
      transaction.state.log, __share_group_state with those of share.coordinator.state.topic, others with the defaults.
    - LEADER_NOT_AVAILABLE for a partition without a leader, with its other fields set.
    - A replica is offline if its broker is fenced or unknown, or its log directory has failed (version 5 and later).
    - Fenced brokers are not listed; if all are fenced, this broker lists itself. A broker that failed without a
      controlled shutdown is listed for two more seconds.
    - Without an advertised address, a client receives the address to which it connected.

Version notes
    - Versions 0-3 cannot forbid topic creation.
    - Versions 8-10 can request the cluster's authorized operations, 8 and later the topics'.
    - Topics by id: 12 and later. In 10 and 11, INVALID_REQUEST for an id.

Not done
    - Rebootstrap (version 13's top-level error) is never requested.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, cast

import msgspec

from pybroker.controller.cluster.topic_names import name_fault
from pybroker.controller.cluster.topics import METADATA_TOPIC
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC, build_offsets_topic
from pybroker.coordinator.group.share_state_topic import SHARE_STATE_TOPIC, build_share_state_topic
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC, build_state_topic
from pybroker.handlers.authorizing import may
from pybroker.handlers.encoded_topics import (
    FIRST_VERSION_WITH_OPERATIONS,
    LAST_VERSION_WITH_CLUSTER_OPERATIONS,
    Form,
    encode_topic,
)
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.handlers.topic_metadata import brokers_shown, controller_shown
from pybroker.metadata.internal_topics import INTERNAL_TOPICS
from pybroker.metadata.replica_directories import directories_by_broker, offline_replicas
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import response_prefix
from pybroker.protocol.messages.create_topics import CreatableTopic
from pybroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pybroker.protocol.schema import ZERO_UUID
from pybroker.security.authorizer import EVERY_OPERATION, NOT_REQUESTED, allowed, authorized_operations
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.quotas import throttle_time_ms
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence

    from pybroker.broker.failed_brokers import FailedBrokers
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.image import MetadataImage, TopicImage

log = logging.getLogger("pybroker.handlers")

_FIRST_VERSION_WITH_TOP_LEVEL_ERROR = 13
_FIRST_VERSION_WITH_NULL_TOPICS = 1
"""Since this version, a null list means all topics; before, an empty list does."""
_FIRST_VERSION_WITH_CREATION_CHOICE = 4
_FIRST_VERSION_WITH_TOPIC_IDS = 12
"""First request version with topic ids. Responses have ids since version 10."""


def _failed(request: MetadataRequest, version: int, error: WireError) -> MetadataResponse:
    return MetadataResponse(
        error_code=error.code if version >= _FIRST_VERSION_WITH_TOP_LEVEL_ERROR else ErrorCode.NONE,
        topics=[
            MetadataResponseTopic(
                name=topic.name or ("" if version < _FIRST_VERSION_WITH_TOPIC_IDS else None),
                topic_id=topic.topic_id,
                error_code=error.code,
            )
            for topic in request.topics or ()
        ],
    )


@handles(
    MetadataRequest,
    requires=[
        of_items(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            select(MetadataRequest.topics, MetadataRequestTopic.name),
            select(MetadataRequest.topics, MetadataRequestTopic.topic_id),
        ),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC, when="all topics are asked for"),
        of_items(
            Operation.CREATE,
            ResourceType.TOPIC,
            select(MetadataRequest.topics, MetadataRequestTopic.name),
            unless=Operation.CREATE,
            when="the topic is created",
        ),
        of_response(Operation.DESCRIBE, ResourceType.CLUSTER, when="the cluster's authorized operations are asked for"),
    ],
    failed=_failed,
    authorizes_itself=True,
)
def metadata(request: MetadataRequest, context: BrokerContext) -> Reply | Awaitable[bytes]:
    """Describe brokers and topics, after creating missing topics if the request allows it."""
    _check(request, context.version)
    if context.authorizer is not None:
        return _describe_to_some(request, context)
    return _describe_to_all(request, context)


async def _describe_to_some(request: MetadataRequest, context: BrokerContext) -> bytes:
    """Describe the topics that the client may describe.

    Others are omitted, or rejected if the request contains them.
    """
    divided = await context.services.slices.run(_divide(request, context))
    request, refused = divided
    if not request.topics and refused:
        # An empty list means all topics in version 0.
        outcome: bytes = await context.services.slices.run(
            _build_response(request, context, context.image, {}, refused)
        )
        return outcome
    return await _describe_to_all(request, context, refused)


def _divide(
    request: MetadataRequest, context: BrokerContext
) -> Sliced[tuple[MetadataRequest, list[MetadataResponseTopic]]]:
    """Return the request with the topics that its client may describe, and the errors of its other topics."""
    if _requests_all(request, context.version):
        described = []
        for topic in context.image.topics.by_name.values():
            yield
            if may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name, is_requested=False):
                described.append(MetadataRequestTopic(name=topic.name))
        return msgspec.structs.replace(request, topics=described, allow_auto_topic_creation=False), []
    allowed, refused = [], []
    creates = _may_create(request, context)
    for requested in request.topics or ():
        yield
        name, by_id = requested.name, requested.topic_id != ZERO_UUID
        found = _lookup(requested, context.image)
        if by_id:
            # Neither the name of a topic that may not be described, nor the existence of an id is revealed.
            visible = found is None or may(context, Operation.DESCRIBE, ResourceType.TOPIC, found.name)
        else:
            visible = may(context, Operation.DESCRIBE, ResourceType.TOPIC, name or "")
            if visible and found is None and creates and not _may_make(name or "", context):
                visible = False
        if visible:
            allowed.append(requested)
        else:
            nameless = None if context.version >= _FIRST_VERSION_WITH_TOPIC_IDS else ""
            refused.append(
                MetadataResponseTopic(
                    name=nameless if by_id else name,
                    topic_id=requested.topic_id,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    is_internal=name in INTERNAL_TOPICS,
                )
            )
    return msgspec.structs.replace(request, topics=allowed), refused


def _may_make(name: str, context: BrokerContext) -> bool:
    is_creator = allowed(context, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, is_requested=False)
    return is_creator or may(context, Operation.CREATE, ResourceType.TOPIC, name)


def _requests_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (version < _FIRST_VERSION_WITH_NULL_TOPICS and not request.topics)


def _describe_to_all(
    request: MetadataRequest, context: BrokerContext, refused: Sequence[MetadataResponseTopic] = ()
) -> Reply | Awaitable[bytes]:
    if request.topics and _may_create(request, context):
        known = context.image.topics.by_name
        if any(topic.name not in known and topic.topic_id == ZERO_UUID for topic in request.topics):
            return _create_and_describe(request, context, refused)
    failed = context.services.failed_brokers
    if failed.has_suspects() and failed.are_suspected(_leaders(request, context.image)):
        return _wait_and_describe(request, context, failed, refused)
    return context.services.slices.run(_build_response(request, context, context.image, {}, refused))


def _leaders(request: MetadataRequest, image: MetadataImage) -> Iterator[int]:
    """Yield the leader of every partition of the requested topics."""
    requested = (
        image.topics.by_id.values() if not request.topics else (_lookup(topic, image) for topic in request.topics)
    )
    return (partition.leader for topic in requested if topic is not None for partition in topic.partitions.values())


async def _wait_and_describe(
    request: MetadataRequest, context: BrokerContext, failed: FailedBrokers, refused: Sequence[MetadataResponseTopic]
) -> bytes:
    """Respond when no leader in the response is suspected to have failed.

    The response has the partitions at that time, but the brokers at the arrival of the request, including the failed
    one. librdkafka, since 2.10, drops a broker that is missing in a response before it moves partitions to their new
    leaders. Partitions of that broker would wait for its next scan, a second later.
    """
    services = context.services
    image = context.image
    while failed.are_suspected(_leaders(request, image)):
        await failed.changed()
        image = services.image()
    response: bytes = await services.slices.run(_build_response(request, context, image, {}, refused))
    return response


def _check(request: MetadataRequest, version: int) -> None:
    if version >= _FIRST_VERSION_WITH_TOPIC_IDS or request.topics is None:
        return
    for topic in request.topics:
        if topic.name is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}")
        if topic.topic_id != ZERO_UUID:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported in requests for version {version}")


def _may_create(request: MetadataRequest, context: BrokerContext) -> bool:
    allowed = context.version < _FIRST_VERSION_WITH_CREATION_CHOICE or request.allow_auto_topic_creation
    return allowed and context.services.config.auto_create_topics_enable


def _missing(topics: list[MetadataRequestTopic], context: BrokerContext) -> Sliced[list[str]]:
    """Return the valid names without a topic, each once, and at most one more than the limit of created topics."""
    known, most = context.image.topics.by_name, context.services.config.auto_create_topics_max_per_request
    missing: dict[str, None] = {}
    for topic in topics:
        name = topic.name
        if name is None or name in known or name in missing or topic.topic_id != ZERO_UUID:
            continue
        yield
        # The metadata log has a topic name, but is unknown to clients, as in Kafka.
        if name_fault(name) is None and name != METADATA_TOPIC:
            missing[name] = None
            if len(missing) > most:
                break
    return list(missing)


_INTERNAL = {
    OFFSETS_TOPIC: build_offsets_topic,
    STATE_TOPIC: build_state_topic,
    SHARE_STATE_TOPIC: build_share_state_topic,
}
"""The functions that build internal topics, which Metadata may create too."""


def _creatable(name: str, context: BrokerContext) -> CreatableTopic:
    build = _INTERNAL.get(name)
    if build is not None:
        brokers = context.image.cluster.brokers.values()
        return build(context.services.config, sum(not broker.fenced for broker in brokers))
    return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)


async def _create_and_describe(
    request: MetadataRequest, context: BrokerContext, refused: Sequence[MetadataResponseTopic]
) -> bytes:
    services = context.services
    names = await services.slices.run(_missing(request.topics or [], context))
    most = services.config.auto_create_topics_max_per_request
    if len(names) > most:
        log.warning(
            "A Metadata request of client %s at %s contains more missing topics than "
            "auto.create.topics.max.per.request=%d: creating the first %d",
            context.client_id,
            context.client_host,
            most,
            most,
        )
    topics = [_creatable(name, context) for name in names[:most]]
    results = await services.controller.active().create_topics(topics)
    image = services.image()
    await services.publisher.published(image.offset)
    # Another request may have created the topic meanwhile.
    errors = {
        result.name: result.error_code
        for result in results
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }
    response: bytes = await services.slices.run(_build_response(request, context, image, errors, refused))
    return response


def _build_response(
    request: MetadataRequest,
    context: BrokerContext,
    image: MetadataImage,
    errors: Mapping[str, ErrorCode],
    refused: Sequence[MetadataResponseTopic],
) -> Sliced[bytes]:
    version = context.version
    has_operations = version >= FIRST_VERSION_WITH_OPERATIONS
    wants_topic_operations = has_operations and request.include_topic_authorized_operations
    wants_cluster_operations = (
        has_operations
        and version <= LAST_VERSION_WITH_CLUSTER_OPERATIONS
        and request.include_cluster_authorized_operations
    )
    form = Form(version, EVERY_OPERATION[ResourceType.TOPIC] if wants_topic_operations else NOT_REQUESTED)
    working = directories_by_broker(image.cluster)

    def describe(topic: TopicImage) -> MetadataResponseTopic:
        return _describe(topic, working, form.operations)

    kept = context.services.topics
    topics: list[bytes]
    if _requests_all(request, version) and not refused and context.authorizer is None:
        topics = yield from kept.all_of(form, image, describe)
    else:
        encoded = kept.lookup(form, image, describe)
        if wants_topic_operations and context.authorizer is not None:
            encoded = partial(_encoded_to_one, context, working)
        topics, seen = [], set()
        for requested in request.topics or ():
            key = (requested.topic_id, requested.name)
            if key not in seen:
                seen.add(key)
                found = _lookup(requested, image)
                topics.append(encode_topic(_unknown(requested, errors), version) if found is None else encoded(found))
                yield
        topics += [encode_topic(topic, version) for topic in refused]
    addresses = brokers_shown(context)
    response = MetadataResponse(
        throttle_time_ms=throttle_time_ms(context),
        brokers=[
            MetadataResponseBroker(node_id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)
            for broker in addresses
        ],
        cluster_id=context.services.cluster_id,
        controller_id=controller_shown(context, addresses),
        cluster_authorized_operations=(
            authorized_operations(context, ResourceType.CLUSTER) if wants_cluster_operations else NOT_REQUESTED
        ),
    )
    response.topics = cast("list[MetadataResponseTopic]", topics)
    return response_prefix(MetadataResponse.__message__.api_key, version) + encode(response, version)


def _encoded_to_one(context: BrokerContext, working: Mapping[int, Collection[bytes]], topic: TopicImage) -> bytes:
    """Encode a topic with this client's authorized operations, without caching."""
    operations = authorized_operations(context, ResourceType.TOPIC, topic.name)
    return encode_topic(_describe(topic, working, operations), context.version)


def _lookup(requested: MetadataRequestTopic, image: MetadataImage) -> TopicImage | None:
    if requested.topic_id != ZERO_UUID:
        return image.topics.by_id.get(requested.topic_id)
    return image.topics.by_name.get(requested.name or "")


def _unknown(requested: MetadataRequestTopic, errors: Mapping[str, ErrorCode]) -> MetadataResponseTopic:
    if requested.topic_id != ZERO_UUID:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=requested.topic_id, name=None)
    name = requested.name or ""
    if name_fault(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    else:
        code = errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _describe(topic: TopicImage, working: Mapping[int, Collection[bytes]], operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=offline_replicas(partition, working),
            )
            for index, partition in topic.partitions.items()
        ],
        topic_authorized_operations=operations,
    )
