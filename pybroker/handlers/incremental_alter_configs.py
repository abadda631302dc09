"""IncrementalAlterConfigs: changes settings of topics, this broker, groups, client metrics subscriptions and loggers.

Key
    44

Versions
    0-1

Behaviour
    - SET, DELETE, APPEND and SUBTRACT; the last two for lists only, starting from the default if nothing is set.
    - Each resource succeeds or fails independently, with all its keys. The response is sent when the change is
      committed and applied here: to a topic's open logs, and for a broker's key to the logs of every topic that
      inherits it.
    - A topic: INVALID_CONFIG with key, value and range for an invalid value, and with the most similar key for an
      unknown key; UNKNOWN_TOPIC_OR_PARTITION.
    - A broker: its own id, or the empty name for all brokers (KIP-226). INVALID_REQUEST for keys that need a restart,
      and for invalid values. Unknown keys are stored, as in Kafka, whose plug-ins read them. They have no effect here,
      and each broker logs a warning with the most similar key.
    - Keys of parts of Kafka that pybroker lacks (ssl.*, sasl.*, remote.*, share groups) are accepted where
      Kafka accepts them, for one broker or one of its listeners (listener.name.NAME.). They have no effect. Secrets are
      neither returned nor logged.
    - A group, which need not exist: its members receive the change with their next heartbeat. INVALID_CONFIG for
      unknown keys, and for values outside the broker's bounds (group.consumer.min.* and max.*, group.streams.min.* and
      max.*).
    - Loggers of this broker (KIP-412), with SET and DELETE: effective at once, until the process ends. INVALID_CONFIG
      for an unknown logger or level; INVALID_REQUEST for another broker's id, another operation, and DELETE of root.
    - Client metrics (KIP-714): INVALID_REQUEST for unknown keys and an interval.ms outside 100 to 3600000,
      INVALID_CONFIG for an invalid number or match pattern. A subscription without keys is deleted.
    - INVALID_REQUEST for a resource or a key that occurs twice, a null value, or another broker's id.
    - validate_only does everything but the change.

Version notes
    - None.

Not done
    - INVALID_CONFIG for the keys of share groups, for consumer.assignor.offload.enable and
      streams.assignor.offload.enable, and for any streams.rack.aware.assignment.tags.
    - Keys that load classes or config providers (metric.reporters, ssl.engine.factory.class, config.providers ...) and
      cordoned.log.dirs are rejected unless they are empty. So are keys for one listener other than ssl.*, sasl.* and
      connection limits.
    - Keys that are read when a broker starts (num.network.threads, listeners ...) are rejected.
    - alter.config.policy.class.name.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.broker.loggers import LOGGERS, LevelChange
from pybroker.controller.cluster.events import ConfigChange
from pybroker.handlers.authorizing import may
from pybroker.handlers.config_changes import PartlyChecked, alter_own, change_configs, null_fault
from pybroker.handlers.errors import WireError, denial
from pybroker.handlers.registry import handles
from pybroker.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
)
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select, where

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext

log = logging.getLogger("pybroker.handlers")

SET, DELETE, APPEND, SUBTRACT = range(4)


def _failed(
    request: IncrementalAlterConfigsRequest, _version: int, error: WireError
) -> IncrementalAlterConfigsResponse:
    return _response(request, [error] * len(request.resources))


def _response(request: IncrementalAlterConfigsRequest, outcomes: list[WireError]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
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


def _authorize_here(request: IncrementalAlterConfigsRequest, context: RequestContext) -> PartlyChecked | None:
    def alter_here(resource: AlterConfigsResource) -> WireError | None:
        if resource.resource_type != BROKER_LOGGER_RESOURCE:
            return None
        # The controller authorizes forwarded resources, but loggers are not forwarded.
        if not may(context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
            return WireError(denial(ResourceType.CLUSTER).code, None)
        return _alter_loggers(resource, context, validate_only=request.validate_only)

    return alter_own(request, _fault, _change, _response, context, alter_here)


@handles(
    IncrementalAlterConfigsRequest,
    requires=[
        of_items(
            Operation.ALTER_CONFIGS,
            ResourceType.TOPIC,
            select(
                IncrementalAlterConfigsRequest.resources,
                where(AlterConfigsResource.resource_type, TOPIC_RESOURCE),
                AlterConfigsResource.resource_name,
            ),
        ),
        of_items(
            Operation.ALTER_CONFIGS,
            ResourceType.GROUP,
            select(
                IncrementalAlterConfigsRequest.resources,
                where(AlterConfigsResource.resource_type, GROUP_RESOURCE),
                AlterConfigsResource.resource_name,
            ),
        ),
        of_items(
            Operation.ALTER_CONFIGS,
            ResourceType.CLUSTER,
            select(
                IncrementalAlterConfigsRequest.resources, where(AlterConfigsResource.resource_type, BROKER_RESOURCE)
            ),
            select(
                IncrementalAlterConfigsRequest.resources,
                where(AlterConfigsResource.resource_type, BROKER_LOGGER_RESOURCE),
            ),
            select(
                IncrementalAlterConfigsRequest.resources,
                where(AlterConfigsResource.resource_type, CLIENT_METRICS_RESOURCE),
            ),
        ),
    ],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
    authorize_here=_authorize_here,
)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Apply the valid changes, and wait until they are in force here."""

    def alter_here(resource: AlterConfigsResource) -> WireError | None:
        if resource.resource_type != BROKER_LOGGER_RESOURCE:
            return None
        return _alter_loggers(resource, context, validate_only=request.validate_only)

    outcomes = await change_configs(
        request.resources, _fault, _change, context, alter_here, validate_only=request.validate_only
    )
    return _response(request, outcomes)


def _alter_loggers(resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool) -> WireError:
    """Change logger levels of this process, all or none."""
    name, node_id = resource.resource_name, context.services.config.node_id
    if not name.removeprefix("-").isdecimal():
        return WireError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if name != str(node_id):
        return WireError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}")
    for config in resource.configs:
        if config.config_operation not in (SET, DELETE):
            operation = {APPEND: "APPEND operation", SUBTRACT: "SUBTRACT operation"}.get(
                config.config_operation, f"Unknown operation type {config.config_operation}"
            )
            return WireError(ErrorCode.INVALID_REQUEST, f"{operation} is not allowed for the BROKER_LOGGER resource")
    changes = [
        LevelChange(config.name, config.value if config.config_operation == SET else None)
        for config in resource.configs
    ]
    fault = LOGGERS.fault(changes)
    if fault is not None:
        return WireError(fault.code, fault.words)
    if not validate_only:
        LOGGERS.change(changes)
        for change in changes:
            # At WARN, as in Kafka, so that it is logged at most levels.
            if change.level is None:
                log.warning("Unset the log level of %s", change.name)
            else:
                log.warning("Updated the log level of %s to %s", change.name, change.level)
    return WireError(ErrorCode.NONE, None)


def _fault(resource: AlterConfigsResource) -> str | None:
    for config in resource.configs:
        is_of_logger = resource.resource_type == BROKER_LOGGER_RESOURCE  # which has its own messages
        if config.config_operation not in (SET, DELETE, APPEND, SUBTRACT) and not is_of_logger:
            return f"Unknown operations type {config.config_operation}"
    return null_fault(
        [config.name for config in resource.configs if config.value is None and config.config_operation != DELETE]
    )


def _change(resource: AlterConfigsResource) -> ConfigChange:
    def having(operation: int) -> dict[str, str]:
        return {config.name: config.value or "" for config in resource.configs if config.config_operation == operation}

    return ConfigChange(
        ConfigResource(resource.resource_type, resource.resource_name),
        {**having(SET), **dict.fromkeys(having(DELETE))},
        appended=having(APPEND),
        subtracted=having(SUBTRACT),
    )
