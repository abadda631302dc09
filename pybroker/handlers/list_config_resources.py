"""ListConfigResources: lists the resources with configurations (KIP-1142).

Key
    74

Versions
    0-1

Behaviour
    - Topics, brokers and their loggers, client metrics subscriptions, and groups with configurations: of the requested
      types, or of all types of the version.
    - UNSUPPORTED_VERSION for a type that the version does not support.

Version notes
    - Version 0 lists client metrics subscriptions only.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError, WireError
from pybroker.handlers.registry import handles
from pybroker.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.handlers.context import BrokerContext

_KNOWN = {
    0: (CLIENT_METRICS_RESOURCE,),
    1: (TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE),
}


def _failed(_request: ListConfigResourcesRequest, _version: int, error: WireError) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error.code)


@handles(
    ListConfigResourcesRequest, requires=[of_request(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)], failed=_failed
)
def list_config_resources(request: ListConfigResourcesRequest, context: BrokerContext) -> ListConfigResourcesResponse:
    """List the resources by type, in the order of Kafka's broker."""
    known = _KNOWN[context.version]
    wanted = request.resource_types or known
    unknown = [resource_type for resource_type in wanted if resource_type not in known]
    if unknown:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported resource type {unknown[0]}")
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in known
            if resource_type in wanted
            for name in _names(resource_type, context)
        ]
    )


def _names(resource_type: int, context: BrokerContext) -> Iterable[str]:
    if resource_type == TOPIC_RESOURCE:
        return context.image.topics.by_name
    if resource_type in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        return [str(broker.id) for broker in context.image.cluster.brokers.values() if not broker.fenced]
    if resource_type == GROUP_RESOURCE:
        return context.image.configs.of_groups()
    if resource_type == CLIENT_METRICS_RESOURCE:
        return context.image.configs.of_client_metrics()
    return ()
