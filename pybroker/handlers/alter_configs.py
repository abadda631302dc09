"""AlterConfigs: replaces all configurations of topics, this broker, groups and client metrics subscriptions.

Key
    33

Versions
    0-2

Behaviour
    - A configuration that is not in the request is reset to its default. Otherwise as IncrementalAlterConfigs, which is
      preferable: concurrent clients that replace whole configurations overwrite each other's changes.
    - A null value is rejected with INVALID_REQUEST.

Version notes
    - None.

Not done
    - As IncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import ConfigChange
from pybroker.handlers.config_changes import PartlyChecked, alter_own, change_configs, null_fault
from pybroker.handlers.registry import handles
from pybroker.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
)
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select, where

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError


def _failed(request: AlterConfigsRequest, _version: int, error: WireError) -> AlterConfigsResponse:
    return _response(request, [error] * len(request.resources))


def _response(request: AlterConfigsRequest, outcomes: list[WireError]) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=outcome.code,
                error_message=outcome.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, outcome in zip(request.resources, outcomes, strict=True)
        ]
    )


def _authorize_here(request: AlterConfigsRequest, context: RequestContext) -> PartlyChecked | None:
    return alter_own(request, _fault, _change, _response, context)


@handles(
    AlterConfigsRequest,
    requires=[
        of_items(
            Operation.ALTER_CONFIGS,
            ResourceType.TOPIC,
            select(
                AlterConfigsRequest.resources,
                where(AlterConfigsResource.resource_type, TOPIC_RESOURCE),
                AlterConfigsResource.resource_name,
            ),
        ),
        of_items(
            Operation.ALTER_CONFIGS,
            ResourceType.GROUP,
            select(
                AlterConfigsRequest.resources,
                where(AlterConfigsResource.resource_type, GROUP_RESOURCE),
                AlterConfigsResource.resource_name,
            ),
        ),
        of_items(
            Operation.ALTER_CONFIGS,
            ResourceType.CLUSTER,
            select(AlterConfigsRequest.resources, where(AlterConfigsResource.resource_type, BROKER_RESOURCE)),
        ),
        of_items(
            Operation.ALTER_CONFIGS,
            ResourceType.CLUSTER,
            select(AlterConfigsRequest.resources, where(AlterConfigsResource.resource_type, CLIENT_METRICS_RESOURCE)),
        ),
    ],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
    authorize_here=_authorize_here,
)
async def alter_configs(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    """Replace the valid configurations, and wait until they are applied here."""
    outcomes = await change_configs(request.resources, _fault, _change, context, validate_only=request.validate_only)
    return _response(request, outcomes)


def _fault(resource: AlterConfigsResource) -> str | None:
    return null_fault([config.name for config in resource.configs if config.value is None])


def _change(resource: AlterConfigsResource) -> ConfigChange:
    return ConfigChange(
        ConfigResource(resource.resource_type, resource.resource_name),
        {config.name: config.value for config in resource.configs},
        replaces=True,
    )
