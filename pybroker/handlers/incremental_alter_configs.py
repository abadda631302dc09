"""IncrementalAlterConfigs: single settings of topics, of this broker and of groups.

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
    - A broker: its own id, or the empty name for all brokers (KIP-226). Keys that cannot change while it runs, wrong
      values and unknown keys are INVALID_REQUEST.
    - Keys of Kafka's parts that are not here (ssl.*, sasl.*, remote.*, share and streams groups) are taken where Kafka
      takes them, for one broker or one of its listeners (listener.name.NAME.); nothing reads them, and no listener is
      served that would. Secrets are returned to nobody and not logged.
    - A group, which need not exist: its members receive the change with their next heartbeat. Unknown keys and
      values that the broker's bounds do not allow (group.consumer.min.* and max.*) are INVALID_CONFIG.
    - A resource or a key named twice, a null value, another broker's id: INVALID_REQUEST.
    - validate_only does everything but the change.

Version notes
    - None.

Not done
    - Broker loggers and client metrics are INVALID_REQUEST; the keys of share and streams groups, and
      consumer.assignor.offload.enable, are INVALID_CONFIG.
    - Kafka takes unknown keys of a broker, for plugins; here there are none, so such a key is a mistake and refused.
    - What would need a class or a config provider to be loaded (metric.reporters, ssl.engine.factory.class,
      config.providers ...) and cordoned.log.dirs are refused unless they ask for nothing; as is a key for one listener
      that is neither ssl.* nor sasl.*, nor a limit of its connections.
    - Keys that are read when a broker starts (num.network.threads, listeners ...) are refused.
    - alter.config.policy.class.name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import ConfigChange
from pybroker.handlers.config_changes import PartlyJudged, change_configs, judge_own, null_fault
from pybroker.handlers.registry import handles
from pybroker.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, ConfigResource
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError

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
    return judge_own(request, _fault, _change, _response, context)


@handles(
    IncrementalAlterConfigsRequest,
    requires=[
        of_items(
            Operation.ALTER_CONFIGS, ResourceType.TOPIC, f"resources[resource_type={TOPIC_RESOURCE}].resource_name"
        ),
        of_items(
            Operation.ALTER_CONFIGS, ResourceType.GROUP, f"resources[resource_type={GROUP_RESOURCE}].resource_name"
        ),
        of_items(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, f"resources[resource_type={BROKER_RESOURCE}]"),
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
    outcomes = await change_configs(request.resources, _fault, _change, context, validate_only=request.validate_only)
    return _response(request, outcomes)


def _fault(resource: AlterConfigsResource) -> str | None:
    for config in resource.configs:
        if config.config_operation not in (SET, DELETE, APPEND, SUBTRACT):
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
