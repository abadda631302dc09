"""DescribeConfigs: returns the settings of topics, this broker, groups, client metrics subscriptions and loggers.

Key
    32

Versions
    1-4

Behaviour
    - A resource that occurs several times with the same keys is described once.
    - Lists every setting, or those in the request. Unknown names are omitted.
    - A topic key that Kafka does not have is listed only if the topic sets it.
    - A topic's value is from the topic, else the broker's dynamic settings, those of all brokers, the broker's file, or
      the default. The synonyms list these sources in that order (KIP-226). Settings that need a restart are read-only.
    - A broker describes only itself. The empty name is the cluster-wide dynamic default.
    - An unknown key of a broker is listed without its value, which may be a secret: sensitive, read-only, and of
      unknown type, as in Kafka.
    - Loggers of this broker (KIP-412): each name with its effective level. The broker id is required.
    - A group's value is from the group, else from the equivalent key of its broker. A group need not exist, but an
      empty name is rejected with INVALID_REQUEST.
    - Client metrics (KIP-714): all keys. A key that is set is its own synonym. The subscription need not exist, but an
      empty name is rejected with INVALID_REQUEST.
    - UNKNOWN_TOPIC_OR_PARTITION for an unknown topic, INVALID_TOPIC_EXCEPTION for an invalid name, INVALID_REQUEST for
      another broker's id.

Version notes
    - Type and documentation of each setting: version 3 and later.

Not done
    - The keys of share groups, consumer.assignor.offload.enable and streams.assignor.offload.enable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.broker.loggers import LOGGERS
from pybroker.config.client_metrics import ClientMetricsConfig
from pybroker.config.group import GroupConfig
from pybroker.config.topic import TopicConfig
from pybroker.controller.cluster.topic_names import name_fault
from pybroker.handlers.config_entries import (
    ConfigEntry,
    broker_entries,
    client_metrics_entries,
    default_entries,
    group_entries,
    logger_entries,
    topic_entries,
)
from pybroker.handlers.errors import ApiError, wire_error
from pybroker.handlers.registry import handles
from pybroker.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select, where

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced


def _failed(request: DescribeConfigsRequest, _version: int, error: WireError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_failed_result(resource, error) for resource in request.resources])


def _failed_result(resource: DescribeConfigsResource, error: WireError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message or error.code.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


@handles(
    DescribeConfigsRequest,
    requires=[
        of_items(
            Operation.DESCRIBE_CONFIGS,
            ResourceType.TOPIC,
            select(
                DescribeConfigsRequest.resources,
                where(DescribeConfigsResource.resource_type, TOPIC_RESOURCE),
                DescribeConfigsResource.resource_name,
            ),
        ),
        of_items(
            Operation.DESCRIBE_CONFIGS,
            ResourceType.GROUP,
            select(
                DescribeConfigsRequest.resources,
                where(DescribeConfigsResource.resource_type, GROUP_RESOURCE),
                DescribeConfigsResource.resource_name,
            ),
        ),
        of_items(
            Operation.DESCRIBE_CONFIGS,
            ResourceType.CLUSTER,
            select(DescribeConfigsRequest.resources, where(DescribeConfigsResource.resource_type, BROKER_RESOURCE)),
            select(
                DescribeConfigsRequest.resources, where(DescribeConfigsResource.resource_type, BROKER_LOGGER_RESOURCE)
            ),
            select(
                DescribeConfigsRequest.resources, where(DescribeConfigsResource.resource_type, CLIENT_METRICS_RESOURCE)
            ),
        ),
    ],
    failed=_failed,
    listeners=ListenerRole.BOTH,
)
def describe_configs(request: DescribeConfigsRequest, context: RequestContext) -> Reply:
    """Describe each resource independently."""
    return context.services.slices.run(_describe_all(request, context))


def _describe_all(request: DescribeConfigsRequest, context: RequestContext) -> Sliced[DescribeConfigsResponse]:
    seen, results = set(), []
    for resource in request.resources:
        keys = resource.configuration_keys
        key = (resource.resource_type, resource.resource_name, None if keys is None else tuple(keys))
        if key not in seen:
            seen.add(key)
            results.append(_describe(resource, request, context))
        yield
    return DescribeConfigsResponse(results=results)


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResult:
    try:
        entries = _entries(resource, context)
    except ApiError as error:
        return _failed_result(resource, wire_error(error))
    wanted = frozenset(resource.configuration_keys or ())
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_result(entry, request) for entry in entries if not wanted or entry.name in wanted],
    )


def _entries(resource: DescribeConfigsResource, context: RequestContext) -> Iterable[ConfigEntry]:
    config = context.services.config
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        fault = name_fault(name)
        if fault is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if name not in context.image.topics.by_name:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return topic_entries(TopicConfig.stored(context.image.configs.of_topic(name), config)[0])
    if resource.resource_type == BROKER_RESOURCE:
        if not name:
            return default_entries(config)
        _check_broker(name, config.node_id, "or empty string, but received")
        return broker_entries(config)
    if resource.resource_type == BROKER_LOGGER_RESOURCE:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_broker(name, config.node_id, "but received")
        return logger_entries(LOGGERS.levels())
    if resource.resource_type == GROUP_RESOURCE:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return group_entries(GroupConfig(context.image.configs.of_group(name), config))
    if resource.resource_type == CLIENT_METRICS_RESOURCE:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return client_metrics_entries(ClientMetricsConfig(context.image.configs.of(CLIENT_METRICS_RESOURCE, name)))
    raise ApiError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource.resource_type}")


def _check_broker(name: str, node_id: int, words: str) -> None:
    if not name.removeprefix("-").isdecimal():
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if name != str(node_id):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id} {words} {name}")


def _result(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ],
        config_type=entry.kind,
        documentation=entry.doc if request.include_documentation else None,
    )
