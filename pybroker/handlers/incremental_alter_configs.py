"""IncrementalAlterConfigs: single settings of topics, of this broker, of groups and client metrics; levels of loggers.

Key
    44

Versions
    0-1

Behaviour
    - SET, DELETE, APPEND and SUBTRACT; the last two for lists only, beginning with the default where nothing is set.
    - Each resource succeeds or fails by itself, and as a whole. A success is answered when the change is committed and
      in force here: in a topic's open logs, for a broker's key in the logs of every topic that inherits it.
    - A topic: INVALID_CONFIG with key, value and range for a wrong value, with the nearest known key for an unknown
      one; UNKNOWN_TOPIC_OR_PARTITION.
    - A broker: its own id, or the empty name for all brokers (KIP-226). Keys that cannot change while it runs and
      wrong values are INVALID_REQUEST. Unknown keys are kept, as in Kafka, whose plug-ins read them. They have no
      effect here, and each broker logs a warning with the nearest known key.
    - Keys of Kafka's parts that are not here (ssl.*, sasl.*, remote.*, share and streams groups) are taken where Kafka
      takes them, for one broker or one of its listeners (listener.name.NAME.); nothing reads them, and no listener is
      served that would. Secrets are returned to nobody and not logged.
    - A group, which need not exist: its members receive the change with their next heartbeat. Unknown keys and
      values that the broker's bounds do not allow (group.consumer.min.* and max.*) are INVALID_CONFIG.
    - Loggers of this broker (KIP-412), with SET and DELETE: in force at once, and until the process ends. An unknown
      logger or level is INVALID_CONFIG; another broker's id, another operation, and DELETE of root INVALID_REQUEST.
    - Client metrics (KIP-714): unknown keys and an interval.ms that is not from 100 to 3600000 are INVALID_REQUEST,
      what is no number and match patterns that are none INVALID_CONFIG. A subscription without keys is gone.
    - A resource or a key named twice, a null value, another broker's id: INVALID_REQUEST.
    - validate_only does everything but the change.

Version notes
    - None.

Not done
    - The keys of share and streams groups, and
      consumer.assignor.offload.enable, are INVALID_CONFIG.
    - What would need a class or a config provider to be loaded (metric.reporters, ssl.engine.factory.class,
      config.providers ...) and cordoned.log.dirs are refused unless they ask for nothing; as is a key for one listener
      that is neither ssl.* nor sasl.*, nor a limit of its connections.
    - Keys that are read when a broker starts (num.network.threads, listeners ...) are refused.
    - alter.config.policy.class.name.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.broker.loggers import LOGGERS, LevelChange
from pybroker.controller.cluster.events import ConfigChange
from pybroker.handlers.config_changes import PartlyJudged, change_configs, judge_own, null_fault
from pybroker.handlers.errors import WireError, denial
from pybroker.handlers.judging import may
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


def _judge_here(request: IncrementalAlterConfigsRequest, context: RequestContext) -> PartlyJudged | None:
    def alter_here(resource: AlterConfigsResource) -> WireError | None:
        if resource.resource_type != BROKER_LOGGER_RESOURCE:
            return None
        # The controller judges rights to all that it is asked; this it is not asked.
        if not may(context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
            return WireError(denial(ResourceType.CLUSTER).code, None)
        return _alter_loggers(resource, context, validate_only=request.validate_only)

    return judge_own(request, _fault, _change, _response, context, alter_here)


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
    judge_here=_judge_here,
)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    """Change what can be changed, and wait until it is in force."""

    def alter_here(resource: AlterConfigsResource) -> WireError | None:
        if resource.resource_type != BROKER_LOGGER_RESOURCE:
            return None
        return _alter_loggers(resource, context, validate_only=request.validate_only)

    outcomes = await change_configs(
        request.resources, _fault, _change, context, alter_here, validate_only=request.validate_only
    )
    return _response(request, outcomes)


def _alter_loggers(resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool) -> WireError:
    """Change levels of this process, all or none."""
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
            # At WARN, as in Kafka: the line is there whatever the levels are now, short of silence.
            if change.level is None:
                log.warning("Unset the log level of %s", change.name)
            else:
                log.warning("Updated the log level of %s to %s", change.name, change.level)
    return WireError(ErrorCode.NONE, None)


def _fault(resource: AlterConfigsResource) -> str | None:
    for config in resource.configs:
        is_of_logger = resource.resource_type == BROKER_LOGGER_RESOURCE  # which has words of its own
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
