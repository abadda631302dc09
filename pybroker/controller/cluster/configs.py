"""Changing configurations of topics and brokers, one key at a time (KIP-339).

Owns which resources can be changed and that a topic's configurations stay valid as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import AlterConfigs, ConfigChange, ConfigResult
from pybroker.machine.machine import Outcome
from pybroker.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.config import ConfigRecord

if TYPE_CHECKING:
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message


def alter_configs(
    image: MetadataImage, event: AlterConfigs, settings: ClusterSettings
) -> Outcome[Message, list[ConfigResult]]:
    """Decide about changed configurations, each resource by itself."""
    results: list[ConfigResult] = []
    records: list[Message] = []
    seen = set()
    for change in event.changes:
        result = _fault(image, change, settings)
        if change.resource in seen:
            result = ConfigResult(change.resource, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        seen.add(change.resource)
        results.append(result or ConfigResult(change.resource))
        if result is None:
            records += _records(image, change)
    return Outcome(() if event.validate_only else tuple(records), results)


def _fault(image: MetadataImage, change: ConfigChange, settings: ClusterSettings) -> ConfigResult | None:
    resource = change.resource
    if resource.type == TOPIC_RESOURCE:
        if resource.name not in image.topics.by_name:
            message = f"The topic '{resource.name}' does not exist."
            return ConfigResult(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        configs = {**image.configs.of_topic(resource.name), **change.changes}
        fault = settings.validate_topic_configs({key: value for key, value in configs.items() if value is not None})
        return None if fault is None else ConfigResult(resource, ErrorCode.INVALID_CONFIG, fault)
    if resource.type == BROKER_RESOURCE:
        if resource.name and not resource.name.isdecimal():
            message = f"Unable to parse broker name '{resource.name}' as a number."
            return ConfigResult(resource, ErrorCode.INVALID_REQUEST, message)
        return None
    return ConfigResult(resource, ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource.type}")


def _records(image: MetadataImage, change: ConfigChange) -> list[ConfigRecord]:
    """Return records for what really changes."""
    resource = change.resource
    now = image.configs.of(resource.type, resource.name)
    return [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in change.changes.items()
        if now.get(name) != value
    ]
